#!/usr/bin/env python3
"""The options of tests/run.sh."""

import argparse
import os
import signal
import sys
import time

from gate import run_gate
from proof import is_clean, print_list, print_results, run_all, run_step
from running import ROOT
from steps import all_steps

DESCRIPTION = """\
Runs the tests. It installs missing packages of Debian 12 (as root; later runs need no root), builds in build/<preset>,
and starts private servers on the loopback.

Without --quick, --step and --all, it runs the gate, which each change must pass. The gate takes at most 15 minutes on
two idle cores from a new clone. Its outcome depends on the code alone: no broker, no server that is killed, no time-out
that a busy machine can miss. The proof, --all, has everything else. It consists of steps of at most 30 minutes each.
CONTRIBUTING.md says which steps a change needs."""


def parse(words):
    parser = argparse.ArgumentParser(prog="tests/run.sh", description=DESCRIPTION,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--quick", action="store_true",
                      help="the tests that take less than three minutes and need no server")
    what.add_argument("--step", action="append", metavar="NAME", help="this step of the proof; may be repeated")
    what.add_argument("--all", action="store_true", help="every step of the proof")
    what.add_argument("--list", action="store_true",
                      help="print the steps: name, usual minutes, what each needs, and what it proves")
    what.add_argument("--results", action="store_true",
                      help="print the last pass of each step with its counts, as a table of Markdown")
    parser.add_argument("--resume", action="store_true",
                        help="with --all: only the steps that have not passed on this commit yet")
    parser.add_argument("--database", action="append", choices=["sqlite3", "mariadb", "postgresql", "mysql"],
                        help="only conformance and the command, on this database; may be repeated")
    parser.add_argument("--test", default="", metavar="FILTER",
                        help="only the test cases with such a name, for example '*rolled-back*'")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N",
                        help="build with N processes; by default, one for each processor")
    options = parser.parse_args(words)
    if options.resume and not options.all:
        parser.error("--resume works only with --all")
    if options.database and (options.step or options.all):
        parser.error("--database does not work with --step and --all")
    if options.test and options.all:
        parser.error("--test works for the gate, --quick and --step")
    if options.jobs < 1:
        parser.error("--jobs needs a number of at least 1")
    return parser, options


def main():
    begun = float(os.environ.get("TXINBOX_TESTS_BEGUN", time.time()))
    parser, options = parse(sys.argv[1:])
    steps = {step.name: step for step in all_steps(ROOT)}
    if options.list:
        print_list(steps.values())
        return 0
    if options.results:
        print_results(steps.values())
        return 0
    if options.all:
        if options.resume and not is_clean():
            parser.error("--resume needs a commit: the tree has changes that are not committed")
        return run_all(list(steps.values()), options)
    if options.step:
        for name in options.step:
            if name not in steps:
                parser.error(f"there is no step '{name}'; --list prints them")
        return int(not all([run_step(steps[name], options) for name in options.step]))
    return run_gate(options, begun)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the reader has seen enough, for example head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
