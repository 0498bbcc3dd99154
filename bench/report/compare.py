"""Prints how two revisions compare, from the rounds of bench/compare.sh.

Usage: python3 bench/report/compare.py FILE OTHER_REVISION
"""

import json
import sys
from pathlib import Path
from statistics import median

from figures import DATABASES, Ratios, digits, table

VARIANTS = {
    "by_hand": "by hand (no txinbox: the noise)",
    "consume": "`consume`",
    "consume_soci_handler": "`consume`, the handler's SQL by SOCI",
    "batch_100": "`consume_batch` of 100",
}


def rows(measurements):
    for database, name in DATABASES.items():
        rounds = {revision: sorted((m for m in measurements if (m["database"], m["revision"]) == (database, revision)),
                                   key=lambda m: m["round"]) for revision in ("this", "other")}
        if not rounds["this"]:
            continue
        for kind in ("new", "duplicate"):
            for variant, text in VARIANTS.items():
                times = {revision: [median(m["result"][kind][variant]) for m in measured]
                         for revision, measured in rounds.items()}
                yield [name, text, "new" if kind == "new" else "duplicate", *(f"{digits(median(times[r]))} µs"
                       for r in ("other", "this")), Ratios(times["this"], times["other"])]


def main():
    measurements = [json.loads(line) for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()]
    print(f"Time of a message, durable. The ratio is that of this working tree to {sys.argv[2]}, round by round: the "
          "median and, in brackets, the middle half.\n")
    print(table(["", "Variant", "Key", sys.argv[2], "This tree", "Ratio"], list(rows(measurements)), left=3))


main()
