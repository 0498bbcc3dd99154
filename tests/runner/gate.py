"""The gate: what each change must pass. Its outcome depends on the code alone."""

import time

from changed import files_to_lint
from running import ROOT, Failed, Log, build, install, minutes, run, say
from steps import Ctest
from tests import run_tests, say_failures

LIMIT = 15 * 60  # seconds, on two cores that have nothing else to do
SOURCES = ("include", "src", "tools", "components", "tests", "examples", "bench")


class Gate:
    def __init__(self, options, begun):
        self.options = options
        self.begun = begun
        self.is_whole = not (options.quick or options.database or options.test)
        self.times = []  # of each part: seconds, name
        self.failed = []

    def log(self, name):
        return Log(ROOT / "build" / "gate" / f"{name}.log")

    def part(self, name, work):
        """Runs one part, and notes its time. A part that fails does not end the gate, unless it is the build."""
        say(f"\n== [{minutes(time.time() - self.begun)}] {name}")
        begin = time.monotonic()
        try:
            work()
        except Failed as why:
            say(str(why))
            self.failed.append(name)
        self.times.append((time.monotonic() - begin, name))

    def command(self, name, command):
        log = self.log(name)
        if run(command, log) != 0:
            raise Failed(f"{log.tail(40)}\nlog: {log.name()}")

    def check_format(self):
        files = [file for folder in SOURCES for file in sorted((ROOT / folder).rglob("*.[ch]pp"))]
        self.command("format", ["clang-format-14", "--dry-run", "-Werror", *files])

    def tests(self, label, databases):
        servers = tuple(name for name in databases if name != "sqlite3")
        others = tuple(f"^{name}$" for name in ("sqlite3", "mariadb", "postgresql", "mysql") if name not in databases)
        log = self.log("tests")
        results = run_tests(Ctest((label,), without=(*others, "^timed$"), servers=servers), log,
                            test_case=self.options.test)
        self.times += [(seconds, name) for name, seconds in results.seconds.items()]
        say(f"   {results.counts.line()}")
        if self.options.test and results.counts.cases == 0:
            raise Failed(f"no test case is named '{self.options.test}'")
        if results.failed:
            say_failures(results.failed, "tests/run.sh")
            raise Failed(f"log: {log.name()}")

    def lint(self):
        files = files_to_lint(ROOT / "build" / "dev")
        if files:
            self.command("lint", ["tests/lint.sh", "build/dev", *files])

    def end(self):
        seconds = time.time() - self.begun
        say("\n   minutes  the slowest parts, and tests among them")
        for taken, name in sorted(self.times, reverse=True)[:5]:
            say(f"   {minutes(taken).rjust(7)}  {name}")
        name, limit = "The gate", f"; the limit on two idle cores is {minutes(LIMIT)}"
        if not self.is_whole:
            name, limit = "The chosen tests", ""
        if self.failed:
            say(f"\n== FAILED in {minutes(seconds)}: {', '.join(self.failed)}")
            return 1
        say(f"\n== {name} passed in {minutes(seconds)}{limit}")
        return 0


def run_gate(options, begun):
    gate = Gate(options, begun)
    gate.part("packages", lambda: install("test"))
    if gate.failed:
        return gate.end()
    if gate.is_whole:
        gate.part("format", gate.check_format)
        gate.part("pages of the API", lambda: gate.command("api", [ROOT / "tests" / "api_docs.sh", "build/dev"]))
    if options.database:
        labels, targets, databases = "^(conformance|cli)$", ["tests_conformance", "tests_cli"], options.database
    elif options.quick:
        labels, targets, databases = "quick", ["tests_quick"], ["sqlite3"]
    else:
        labels, targets, databases = "gate", ["tests_gate"], ["sqlite3", "mariadb", "postgresql"]
    gate.part("build", lambda: build("dev", targets, gate.log("build"), options.jobs))
    if "build" in gate.failed:
        return gate.end()
    gate.part("tests", lambda: gate.tests(labels, databases))
    if gate.is_whole:
        gate.part("lint of what has changed", gate.lint)
    return gate.end()
