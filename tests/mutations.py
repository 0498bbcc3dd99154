#!/usr/bin/env python3
"""Changes one place of the code at a time, and checks that a test fails.

If no test notices a mutation, the mutation has survived: a test is missing, or the code is useless. The mutations are
in tests/mutations/*.toml. Each is tried on a copy of the tree.

Status: 0 if all mutations that ran were killed, 1 if one survived, 2 if one could not be tried. A mutation cannot be
tried if its text is not exactly once in its file, if it does not build, or if its tests fail without it.

Mutations for servers need the URLs of the servers, which servers.sh sets:
    tests/servers.sh --mariadb --postgresql --mysql -- tests/mutations.py

With --simulate, the simulator must notice them: those that say by how many seeds (`seeds`).
"""

import argparse
import filecmp
import fnmatch
import functools
import os
import pathlib
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = {"conformance": "txinbox_conformance", "logic": "txinbox_logic", "unit": "txinbox_unit_tests",
            "orders": "txinbox_orders", "faults": "txinbox_faults", "cli": "txinbox_cli_tests", "http": "txinbox_http_tests",
            "opentelemetry-unit": "txinbox_opentelemetry_unit_tests", "kafka": "txinbox_kafka_tests", "kafka-unit": "txinbox_kafka_unit_tests",
            "rabbitmq": "txinbox_rabbitmq_tests", "rabbitmq-unit": "txinbox_rabbitmq_unit_tests",
            "redis": "txinbox_redis_tests", "redis-unit": "txinbox_redis_unit_tests",
            "rocketmq": "txinbox_rocketmq_tests", "sim": "txinbox-sim"}
NO_DATABASE = ("unit", "orders", "sim")
NEEDED = {"cli": ("txinbox-cli",)}  # what else to build for these programs
# Beside the folder of the tests: the programs of components that need no server, and the simulator.
FOLDERS = {"sim": "../tools/sim", "http": "component_http", "kafka-unit": "component_kafka",
           "opentelemetry-unit": "component_opentelemetry", "rabbitmq-unit": "component_rabbitmq", "redis-unit": "component_redis"}
COMPONENTS = {"kafka", "rabbitmq", "redis", "rocketmq"}  # their programs run on a server that brokers.sh starts
# The variables that servers.sh sets; None where there is no server.
DATABASES = {"sqlite3": None, "mysql": "TXINBOX_TEST_MARIADB_URL", "postgresql": "TXINBOX_TEST_POSTGRESQL_URL",
             "mysql-server": "TXINBOX_TEST_MYSQL_URL"}  # "mysql" is MariaDB, "mysql-server" is MySQL
# tracing.sh sets it: the command before a program that needs OpenTelemetry.
RUN_WITH_OPENTELEMETRY = "TXINBOX_RUN_WITH_OPENTELEMETRY"
# A mutation can make a test wait forever. So a test has a limit in seconds: the first one without a mutation, and with one
# ten times what it took without, so that a busy machine does not count as a test that noticed the mutation.
UNCHANGED_LIMIT = 600
SHORTEST_LIMIT = 60


class Untried(Exception):
    """The mutation could not be tried."""


class Mutation:
    KEYS = {"what", "file", "old", "new", "tests"}
    OPTIONAL = {"cases", "program", "database", "seeds"}

    def __init__(self, group, number, entry):
        wrong = (self.KEYS - entry.keys()) | (entry.keys() - self.KEYS - self.OPTIONAL)
        if wrong:
            sys.exit(f"{group}.toml, mutation {number}: missing or unknown: {', '.join(sorted(wrong))}")
        self.group, self.what = group, entry["what"]
        self.file, self.old, self.new = entry["file"], entry["old"], entry["new"]
        self.tests = entry["tests"]
        # doctest's filters: by the source file, and by the case's name.
        self.filters = ["--source-file=" + ",".join(f"*/{test}.cpp" for test in entry["tests"])]
        if "cases" in entry:
            self.filters.append(f"--test-case={entry['cases']}")
        self.program = entry.get("program", "conformance")
        if self.program == "orders":
            self.filters.append("--test-suite-exclude=long")
        self.database = entry.get("database", "sqlite3")
        self.seeds = entry.get("seeds")  # the simulator notices the mutation in one of so many worlds
        if self.program not in PROGRAMS or self.database not in DATABASES:
            sys.exit(f"{group}.toml, mutation {number}: no such program or database")
        if self.program == "sim":  # only the simulator notices it
            self.simulated()

    def simulated(self):
        """The same mutation, for the simulator."""
        self.program, self.database = "sim", "sqlite3"
        self.filters = ["--no-shrink", f"--count={self.seeds}"]
        return self

    def needs(self):
        """The environment variable that its program needs; None if it needs none."""
        if self.program == "opentelemetry-unit":
            return RUN_WITH_OPENTELEMETRY
        return DATABASES[self.database] if self.program not in NO_DATABASE else None

    def can_run(self):
        return self.needs() is None or self.needs() in os.environ

    def server(self):
        """The URL of its server; "" if it needs no server."""
        variable = DATABASES[self.database] if self.program not in NO_DATABASE else None
        return os.environ[variable] if variable else ""

    def applied_to(self, text):
        count = text.count(self.old)
        if count != 1:
            raise Untried(f"its text stands {count} times in {self.file}")
        if self.old == self.new:
            raise Untried("it changes nothing")
        return text.replace(self.old, self.new)


@functools.cache
def test_files(program):
    """The names of the files of tests that the program has, without their ending."""
    if program in ("conformance", "logic", "unit", "orders", "cli", "faults"):
        return {file.stem for file in (ROOT / "tests" / program).rglob("*.cpp")}
    component = program.removesuffix("-unit")
    command = rf"txinbox_component_unit_tests\(\s*{component}\b" if component != program else (
        rf"txinbox_test_program\(\s*txinbox_{component}_tests\b")
    text = (ROOT / "components" / component / "tests" / "CMakeLists.txt").read_text()
    begin = re.search(command, text).start()
    files = set(re.findall(r"(\w+)\.cpp", text[begin:text.index(")", begin)]))
    if program == "redis":
        files |= {file.stem for file in (ROOT / "tests" / "conformance" / "lease" / "shared").glob("*.cpp")}
    return files


def load(folder):
    mutations = []
    for file in sorted(folder.glob("*.toml")):
        entries = tomllib.loads(file.read_text())["mutation"]
        mutations += [Mutation(file.stem, i, entry) for i, entry in enumerate(entries, 1)]
    return mutations


class Copy:
    """A copy of the tree, with its own build folder."""

    def __init__(self, folder, preset, build_jobs):
        self.tree = folder / "tree"
        self.build_jobs = build_jobs
        self.preset = preset
        self.environment = {**os.environ, "CCACHE_BASEDIR": str(folder), "CCACHE_NOHASHDIR": "1"}
        self.bring_up_to_date()
        self.run(["cmake", "--preset", preset], "cmake")

    def bring_up_to_date(self):
        """Copies only the files that differ, so that an earlier build can be used."""
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                                check=True, capture_output=True, text=True).stdout
        names = {name for name in filter(None, listed.split("\0")) if (ROOT / name).is_file()}
        for file in list(self.tree.rglob("*")):
            name = file.relative_to(self.tree)
            if file.is_file() and name.parts[0] != "build" and str(name) not in names:
                file.unlink()
        for name in names:
            to = self.tree / name
            if to.is_file() and filecmp.cmp(ROOT / name, to, shallow=False):
                continue
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, to)
            shutil.copymode(ROOT / name, to)

    def run(self, command, what):
        done = subprocess.run(command, cwd=self.tree, env=self.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace")
        if done.returncode != 0:
            raise Untried(f"{what} failed:\n{done.stdout[-3000:]}")

    def build(self, program):
        targets = [PROGRAMS[program], *NEEDED.get(program, ())]
        self.run(["cmake", "--build", f"build/{self.preset}", f"-j{self.build_jobs}", "--target", *targets], "the build")

    def test(self, mutation, limit, *more):
        """The exit status (None if the test had not ended at the limit), and the output."""
        tests = self.tree / "build" / self.preset / "tests"
        command = [tests / PROGRAMS[mutation.program]]
        if mutation.program == "sim":
            more = ()  # those are options of doctest
        if mutation.program in FOLDERS:
            command = [tests / FOLDERS[mutation.program] / PROGRAMS[mutation.program]]
        if mutation.program in COMPONENTS:
            command = [self.tree / "tests" / "brokers.sh", mutation.program,
                       tests / f"component_{mutation.program}" / PROGRAMS[mutation.program]]
        if mutation.program == "opentelemetry-unit":
            command = [os.environ[RUN_WITH_OPENTELEMETRY], *command]
        environment = {**self.environment, "TXINBOX_TEST_DATABASE": mutation.database.removesuffix("-server"),
                       "TXINBOX_TEST_URL": mutation.server(),
                       "TXINBOX_COMMAND": str(self.tree / "build" / self.preset / "tools" / "cli" / "txinbox")}
        running = subprocess.Popen([*command, *mutation.filters, *more], cwd=self.tree, env=environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                   start_new_session=True)
        try:
            output, _ = running.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            self.end(running)
            return None, ""
        return running.returncode, output

    @staticmethod
    def end(running):
        """Ends the process and its children. brokers.sh ends its server when it gets a signal."""
        try:
            os.killpg(running.pid, signal.SIGTERM)
            running.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            running.communicate()

    def limit_of(self, mutation):
        """Runs the tests without the mutation, and returns the limit for their run with it."""
        self.build(mutation.program)
        if mutation.program != "sim":
            _, counted = self.test(mutation, UNCHANGED_LIMIT, "--count")
            found = re.search(r"current filters: (\d+)", counted)
            if not found or int(found[1]) < 1:
                raise Untried("none of its test cases is there")
        begin = time.monotonic()
        status, output = self.test(mutation, UNCHANGED_LIMIT)
        if status is None:
            raise Untried(f"its test cases do not end within {UNCHANGED_LIMIT} s without it")
        if status != 0:
            raise Untried(f"its test cases fail without it:\n{output[-3000:]}")
        return max(SHORTEST_LIMIT, 10 * (time.monotonic() - begin))

    def outcome_of(self, mutation, limit):
        """The result of the tests, and the test case that noticed the mutation."""
        file = self.tree / mutation.file
        text = file.read_text()
        changed = mutation.applied_to(text)
        try:
            file.write_text(changed)
            self.build(mutation.program)
            status, output = self.test(mutation, limit, "--abort-after=1")
        finally:
            file.write_text(text)
        if status == 0:
            return "SURVIVED", ""
        if status is None:
            return "killed", f"(no end within {limit:.0f} s)"
        case = re.search(r"^(?:TEST CASE:\s+|(?=seed \d+ failed))(.*)$", output, re.MULTILINE)
        return "killed", case[1] if case else f"(exit status {status})"


def try_all(mutations, arguments, folder):
    results = {}
    waiting = queue.Queue()
    for number, mutation in mutations:
        if not mutation.can_run():
            results[number] = ("skipped", f"{mutation.needs()} is not set")
        else:
            waiting.put((number, mutation))
    limits = {}
    lock = threading.Lock()

    def work(worker):
        try:
            copy = Copy(folder / str(worker), arguments.preset, arguments.build_jobs)
        except Untried as why:
            with lock:
                print(f"copy {worker}: {why}", file=sys.stderr)
            return
        while True:
            try:
                number, mutation = waiting.get_nowait()
            except queue.Empty:
                return
            begin = time.monotonic()
            tests = (mutation.program, mutation.database, tuple(mutation.filters))
            try:
                mutation.applied_to((copy.tree / mutation.file).read_text())
                if tests not in limits:
                    limits[tests] = copy.limit_of(mutation)
                result = copy.outcome_of(mutation, limits[tests])
            except Untried as why:
                result = ("NOT TRIED", str(why))
            with lock:
                results[number] = result
                print(f"{len(results)}/{len(mutations)}  {result[0]:9}  {mutation.what}  "
                      f"({time.monotonic() - begin:.0f} s)", file=sys.stderr, flush=True)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(min(arguments.jobs, max(1, waiting.qsize())))]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    return results


def table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the mutations, and try none")
    parser.add_argument("--check", action="store_true",
                        help="look whether each mutation's text still stands in its file once, and whether its program "
                             "has its tests; try none")
    parser.add_argument("--only", action="append", default=[], metavar="N|GROUP",
                        help="try only this number, or this file's; may be given more than once")
    parser.add_argument("--simulate", action="store_true", help="let the simulator notice the mutations, not the tests")
    parser.add_argument("--jobs", type=int, default=1, help="how many copies of the tree work at a time (default: 1)")
    parser.add_argument("--build-jobs", type=int, default=os.cpu_count(), help="compilers of each copy")
    parser.add_argument("--preset", default="dev", help="of CMakePresets.json (default: dev)")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "mutations",
                        help="where the copies are made, and kept for the next time (default: build/mutations)")
    arguments = parser.parse_args()

    mutations = list(enumerate(load(ROOT / "tests" / "mutations"), 1))
    if arguments.only:
        known = {str(n) for n, _ in mutations} | {m.group for _, m in mutations}
        for only in arguments.only:
            if only not in known:
                sys.exit(f"there is no mutation and no group {only}")
        mutations = [(n, m) for n, m in mutations if str(n) in arguments.only or m.group in arguments.only]
    if arguments.simulate:
        mutations = [(n, m.simulated()) for n, m in mutations if m.seeds]
    if arguments.list:
        table([("", "group", "file", "what", "tests")] +
              [(str(n), m.group, m.file, m.what,
                m.program if m.program in NO_DATABASE else f"{m.program} {m.database}") for n, m in mutations])
        return 0

    if arguments.check:
        wrong = 0
        for number, mutation in mutations:
            try:
                mutation.applied_to((ROOT / mutation.file).read_text())
                for test in mutation.tests:
                    if not fnmatch.filter(test_files(mutation.program), test):
                        raise Untried(f"the program {mutation.program} has no file {test}.cpp")
            except (Untried, OSError) as error:
                wrong += 1
                print(f"{number}: {mutation.what}: {error}", file=sys.stderr)
        print(f"{len(mutations)} mutations, {wrong} of which cannot be tried")
        return 2 if wrong else 0

    results = try_all(mutations, arguments, arguments.folder.resolve())
    missing = ("NOT TRIED", "no copy of the tree could be made")
    rows = [("", "group", "what", "result", "noticed by")]
    for number, mutation in mutations:
        result, why = results.get(number, missing)
        rows.append((str(number), mutation.group, mutation.what, result, why.splitlines()[0] if why else ""))
    table(rows)
    kinds = [results.get(number, missing)[0] for number, _ in mutations]
    print(f"\n{len(kinds)} mutations: {kinds.count('killed')} killed, {kinds.count('SURVIVED')} survived, "
          f"{kinds.count('NOT TRIED')} not tried, {kinds.count('skipped')} skipped")
    print(f"count: {kinds.count('killed')} mutations noticed")
    for number, mutation in mutations:
        result, why = results.get(number, missing)
        if result == "NOT TRIED" and "\n" in why:
            print(f"\n{number}: {mutation.what}: {why}", file=sys.stderr)
    return 2 if "NOT TRIED" in kinds else int("SURVIVED" in kinds)


if __name__ == "__main__":
    sys.exit(main())
