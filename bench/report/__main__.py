"""Writes the report of a run: benchmarks.md, and plots and raw figures in the folder benchmarks.

For bench/run.sh. Usage: python3 bench/report --results FILE --failures FILE --output FOLDER --seconds N [--revision NAME]
[--runs N] [--quick]
"""

import argparse
import json
from pathlib import Path
from string import Template

import machine
import plots
import sections
import targets
from figures import Run

TEMPLATE = Path(__file__).with_name("template.md")
GROWTH = {
    "batch": "Messages in a batch",
    "batch_at_once": "Messages in a batch with one handler",
    "failing": "Keys of 100 that fail",
    "workers": "Workers",
    "lanes": "Lanes that wait",
    "outbox": "Messages in the outbox",
}
QUICK = "> A run with `--quick`: few rounds and small tables. Do not quote these figures.\n"


def picture(drawn, name, text):
    return f"![{text}](benchmarks/{name}.svg)" if name in drawn else ""


def main():
    parser = argparse.ArgumentParser(description="Writes the report of a benchmark run")
    parser.add_argument("--results", required=True, type=Path, help="a line of JSON for each measurement")
    parser.add_argument("--failures", required=True, type=Path, help="a line for each measurement that failed")
    parser.add_argument("--output", required=True, type=Path)
    parser.add_argument("--seconds", required=True, type=int, help="what the measuring took")
    parser.add_argument("--revision", default=machine.commit() or "unknown", help="what was measured")
    parser.add_argument("--runs", default=1, type=int, help="in how many runs of bench/run.sh, one after the other")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()

    run = Run(options.results.read_text(encoding="utf-8").splitlines())
    failures = options.failures.read_text(encoding="utf-8").splitlines()
    folder = options.output / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    drawn = plots.draw(run, folder)
    (folder / "results.json").write_text(
        "[\n" + ",\n".join(json.dumps(m, separators=(",", ":")) for m in run.measurements) + "\n]\n", encoding="utf-8")

    notes = QUICK if options.quick else ""
    if failures:
        notes += "\n".join(["> **Failed:** " + "; ".join(failures) + ".", ""])
    rounds = [len(m["result"]["new"]["by_hand"]) for m in run.find("transactions")]
    text = Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        notes="\n" + notes if notes else "",
        date=machine.today(),
        revision=f"`{options.revision}`",
        runs="one run" if options.runs == 1 else f"{options.runs} runs of different sections, one after the other",
        rounds=f"{min(rounds)} to {max(rounds)}" if rounds and min(rounds) != max(rounds) else str(max(rounds, default=0)),
        in_short=sections.in_short(run),
        one_message_plot=picture(drawn, "one-message", "Time of one message relative to by hand"),
        targets=targets.targets_table(run),
        new=sections.transactions(run, "new"),
        duplicate=sections.transactions(run, "duplicate"),
        batches=sections.batches(run),
        batches_plot=picture(drawn, "batches", "Messages a second in batches"),
        instructions=sections.instructions(run),
        threads=sections.threads(run),
        threads_plot=picture(drawn, "threads", "Messages a second by threads"),
        sizes=sections.sizes(run),
        sizes_plot=picture(drawn, "sizes", "Time of one message by the size of the table"),
        sizes_memory=sections.sizes_memory(run),
        purge=sections.purge(run),
        purge_plot=picture(drawn, "purge", "Time of one message while a purge runs, by percentile"),
        page_views=sections.page_views(run),
        page_rates=sections.page_rates(run),
        round_trip=sections.round_trip(run),
        http=sections.http(run),
        http_one_connection=sections.http_one_connection(run),
        leases=sections.leases(run),
        redis=sections.redis(run),
        kafka=sections.broker(run, "kafka", "by_hand", "by hand"),
        rabbitmq=sections.broker(run, "rabbitmq", "by_hand", "by hand"),
        rocketmq=sections.broker(run, "rocketmq", "source_alone", "the source"),
        loop_cost=sections.loop_cost(run),
        loop_lanes=sections.loop_lanes(run),
        **{f"growth_{name}": sections.growth(run, name, what) for name, what in GROWTH.items()},
        **{f"growth_{name}_plot": picture(drawn, "growth-" + name.replace("_", "-"), what)
           for name, what in GROWTH.items()},
        outbox_add=sections.outbox_add(run),
        outbox_drain=sections.outbox_drain(run),
        outbox_failing=sections.outbox_failing(run),
        outbox_snapshot=sections.outbox_snapshot(run),
        outbox_delay=sections.outbox_delay(run),
        redeliveries=sections.redeliveries(run),
        command=sections.command(run),
        memory=sections.memory(run),
        machine=machine.machine(run, options.seconds, options.revision),
    )
    (options.output / "benchmarks.md").write_text(text, encoding="utf-8")


main()
