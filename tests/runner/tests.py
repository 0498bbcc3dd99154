"""Runs ctest tests on private servers, and reads what they counted."""

import os
import re
import subprocess
from collections import Counter
from dataclasses import dataclass, field

from running import ROOT, Failed, run, say

RESULT = re.compile(r"^ *(?:\d+/\d+ )?Test +#\d+: (\S+) \.* *(?:\*\*\*)?(\S.*?) +([0-9.]+) sec")
CASES = re.compile(r"^\[doctest\] test cases: +(\d+) \| +(\d+) passed \| +(\d+) failed(?: \| +(\d+) skipped)?", re.M)
COUNT = re.compile(r"^count: (\d+) (.+)$", re.M)
NOTE = re.compile(r"^note: (.+)$", re.M)
SHOWN = 40  # lines of a failed test's output
FAILED_CASE = re.compile(r"^TEST CASE: +(.+)$", re.M)


@dataclass
class Counts:
    """What the tests of a step counted. A test program prints a line "count: N WHAT", or "note: TEXT"."""

    tests: int = 0  # of ctest
    cases: int = 0
    sums: Counter = field(default_factory=Counter)
    notes: list = field(default_factory=list)
    repeated: int = 0

    def read(self, text):
        self.cases += sum(int(found[1]) for found in CASES.findall(text))
        for number, what in COUNT.findall(text):
            self.sums[what] += int(number)
        self.notes += NOTE.findall(text)

    def add(self, other):
        self.tests += other.tests
        self.cases += other.cases
        self.sums.update(other.sums)
        self.notes += other.notes
        self.repeated += other.repeated

    def line(self):
        parts = [f"{self.cases:,} case{'s' if self.cases > 1 else ''}"] if self.cases else []
        parts += [f"{number:,} {what}" for what, number in self.sums.items()]
        if self.repeated:
            parts.append(f"{self.repeated} tests repeated")
        return " · ".join(parts) or f"{self.tests} tests"


@dataclass
class Results:
    seconds: dict = field(default_factory=dict)  # of each test
    failed: dict = field(default_factory=dict)  # of each failed test: its failed test cases, and its output
    counts: Counts = field(default_factory=Counts)


def excerpt(output):
    """The part of a failed test's output that says why: doctest's errors, or its end."""
    lines = output.splitlines()
    first = next((i for i, line in enumerate(lines) if " ERROR: " in line), None)
    return lines[-SHOWN:] if first is None else lines[max(0, first - 5):first + SHOWN]


def say_failures(failed, again):
    """Prints why each test failed, and the command that repeats each failed case. `again` repeats all of the part."""
    for test, (cases, output) in failed.items():
        say(f"\n   {test} failed:")
        for line in excerpt(output):
            say(f"   | {line}")
        for case in cases:
            say(f"   again: {again} --test '{case.replace(',', '?')}'")
        if not cases:  # its process ended, or it is no program of test cases
            say(f"   again: {again}")


def preload():
    """The library that makes a server not wait for the disk."""
    listed = subprocess.run(["/sbin/ldconfig", "-p"], check=True, capture_output=True, text=True).stdout
    found = re.search(r"libeatmydata\.so\.1 .*=> (\S+)", listed)
    if not found:
        raise Failed("libeatmydata is not installed; run tests/install-packages.sh test as root")
    return found[1]


def sanitizer_options():
    defaults = {"ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1", "UBSAN_OPTIONS": "print_stacktrace=1",
                "TSAN_OPTIONS": f"second_deadlock_stack=1:suppressions={ROOT}/tests/tsan.supp"}
    return {name: os.environ.get(name, value) for name, value in defaults.items()}


def command_of(part, repeats, test_case):
    folder = ROOT / "build" / part.preset
    command = ["ctest", "--test-dir", folder, "--output-on-failure", "--no-tests=error", "--parallel", part.parallel]
    for label in part.labels:
        command += ["-L", label if label[0] == "^" else f"^{label}$"]
    if part.without:  # with several -LE, ctest would exclude the tests that all of them match
        command += ["-LE", "|".join(part.without)]
    if repeats:
        command += ["--repeat", "until-pass:2"]
    environment = {**sanitizer_options(), **dict(part.environment)}
    if test_case:
        environment["TXINBOX_TEST_CASE"] = test_case
    servers = [name for name in part.servers if name != "mysql" or "TXINBOX_TEST_MYSQL_URL" not in os.environ]
    if servers:
        start = [ROOT / "tests" / "servers.sh", *(f"--{name}" for name in servers)]
        if part.restartable:
            start.append("--restartable")
        # Otherwise the tests would wait for the disk most of the time. They kill processes, not the machine.
        if not part.durable:
            start += ["--preload", preload()]
        command = [*start, "--", *command]
    if part.galera:
        command = [ROOT / "tests" / "galera.sh", "--", *command]
    return command, environment


def output_of(test, text):
    """The output of the last run of a test, in ctest's log."""
    begin = text.rfind(f" Testing: {test}\n")
    end = text.find("\n<end of output>", begin)
    return text[begin:end if end >= 0 else None]


def run_tests(part, log, repeats=False, test_case=""):
    command, environment = command_of(part, repeats, test_case)
    begin = log.size()
    status = run(command, log, environment.items(), shown=RESULT.match)
    results = Results()
    attempts = {}
    for line in log.text(begin).splitlines():
        found = RESULT.match(line)
        if found:
            name, result, seconds = found.groups()
            results.seconds[name] = results.seconds.get(name, 0) + float(seconds)
            attempts.setdefault(name, []).append(result)
    # ctest keeps the output of tests that passed in this file.
    output = ROOT / "build" / part.preset / "Testing" / "Temporary" / "LastTest.log"
    text = output.read_text(errors="replace") if output.is_file() else ""
    log.file.write(text)
    results.counts.read(text)
    results.counts.tests = len(attempts)
    for name, tries in attempts.items():
        if tries[-1] == "Passed":
            results.counts.repeated += len(tries) - 1
        else:
            output = output_of(name, text)
            results.failed[name] = sorted(set(FAILED_CASE.findall(output))), output
    if status != 0 and not results.failed:
        raise Failed(f"ctest failed with status {status}:\n{log.tail(30)}\nlog: {log.name()}")
    return results
