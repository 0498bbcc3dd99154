"""Runs the steps of the proof, and keeps which of them passed on which commit."""

import json
import time
from datetime import datetime, timezone

from running import ROOT, Failed, Log, build, git, install, minutes, run, say
from steps import Ctest, Script
from tests import Counts, run_tests, say_failures

RECORDS = ROOT / "build" / "proof"


def is_clean():
    return git("status", "--porcelain") == ""


def record_file():
    return RECORDS / f"{git('rev-parse', 'HEAD')}.json"


def passed_steps():
    """The steps that passed on this commit, with their counts."""
    file = record_file()
    return json.loads(file.read_text()) if file.is_file() else {}


def record(step, seconds, counts):
    if not is_clean():
        say("   not recorded for --resume: the tree has changes that are not committed")
        return
    steps = passed_steps()
    steps[step.name] = {"when": datetime.now(timezone.utc).isoformat(timespec="seconds"), "seconds": round(seconds),
                        "counts": counts.line(), "notes": counts.notes}
    RECORDS.mkdir(parents=True, exist_ok=True)
    record_file().write_text(json.dumps(steps, indent=2) + "\n")


def run_part(part, step, log, options, counts):
    """Returns the failed test cases of each failed test."""
    targets = part.builds or ((f"tests_{part.labels[0].strip('^$')}",) if isinstance(part, Ctest) else ())
    if targets:
        build(part.preset, targets, log, options.jobs)
    if isinstance(part, Script):
        begin = log.size()
        status = run(part.command, log, part.environment, shown=lambda line: line.startswith(("count: ", "note: ")))
        counts.read(log.text(begin))
        if status != 0:
            raise Failed(f"{part.command[0]} failed with status {status}:\n{log.tail(30)}")
        return {}
    results = run_tests(part, log, step.repeats, options.test)
    counts.add(results.counts)
    return results.failed


def run_step(step, options):
    """Returns whether the step passed."""
    say(f"\n== {step.name}: {step.proves} (usually {step.minutes} minutes)")
    begin = time.monotonic()
    log = Log(ROOT / "build" / "proof" / "logs" / f"{step.name}.log")
    counts = Counts()
    again = f"tests/run.sh --step {step.name}"
    failed = {}
    try:
        install(step.packages)
        for part in step.parts:
            failed |= run_part(part, step, log, options, counts)
    except Failed as why:
        say(f"\n{why}\n== {step.name}: FAILED in {minutes(time.monotonic() - begin)}\n   again: {again}\n"
            f"   log:   {log.name()}")
        return False
    seconds = time.monotonic() - begin
    for note in counts.notes:
        say(f"   {note}")
    if failed:
        say(f"\n== {step.name}: FAILED in {minutes(seconds)}")
        say_failures(failed, again)
        say(f"   log:   {log.name()}")
        return False
    if options.test and counts.cases == 0:
        say(f"== {step.name}: FAILED: no test case is named '{options.test}'")
        return False
    say(f"== {step.name}: passed in {minutes(seconds)}: {counts.line()}")
    if not options.test:
        record(step, seconds, counts)
    return True


def run_all(steps, options):
    begin = time.monotonic()
    done = passed_steps() if options.resume else {}
    rest = [step for step in steps if step.name not in done]
    hours = sum(step.minutes for step in rest) / 60
    say(f"{len(steps)} steps, {len(steps) - len(rest)} of which passed on this commit already; the rest usually takes "
        f"{hours:.1f} hours")
    failed = [step.name for step in rest if not run_step(step, options)]
    print_results(steps)
    if failed:
        say(f"\n== FAILED in {minutes(time.monotonic() - begin)}: {', '.join(failed)}")
        return 1
    say(f"\n== All steps passed on {git('rev-parse', '--short', 'HEAD')}")
    return 0


def table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def print_list(steps):
    table([("STEP", "MINUTES", "NEEDS", "PROVES")] +
          [(step.name, str(step.minutes).rjust(7), step.needs, step.proves) for step in steps])


def print_results(steps):
    """The last pass of each step, on any commit, as the table of docs/internals/reliability.md."""
    last = {}
    for file in RECORDS.glob("*.json"):
        for name, entry in json.loads(file.read_text()).items():
            if name not in last or entry["when"] > last[name][1]["when"]:
                last[name] = (file.stem[:7], entry)
    say("| Step | Commit | Date | Minutes | Counted |\n|---|---|---|--:|---|")
    for step in steps:
        if step.name in last:
            commit, entry = last[step.name]
            say(f"| `{step.name}` | {commit} | {entry['when'][:10]} | {minutes(entry['seconds'])} | "
                f"{'; '.join([entry['counts'], *entry['notes']])} |")
