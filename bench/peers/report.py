"""The tables of a run in Markdown."""

from statistics import median, quantiles

from faults import CASES
from peer import CANDIDATES

DATABASES = {"postgresql": "PostgreSQL", "mariadb": "MariaDB"}


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def faults_table(results, database):
    """`results` has the cases by candidate."""
    columns = [case for case in CASES if any(case in cases for cases in results.values())]
    rows = []
    for candidate in CANDIDATES:
        if candidate.name in results:
            letters = [results[candidate.name].get(case, {}).get("letter", "-") for case in columns]
            rows.append([candidate.title] + [each if each == "E" else f"**{each}**" for each in letters])
    return table([DATABASES[database]] + columns, rows)


def of(results, database, candidate, workers, kind, field="us"):
    """A figure of each round."""
    return {r["round"]: r[kind][field] for r in results
            if (r["database"], r["candidate"], r["workers"]) == (database, candidate, workers)}


def ratio(results, database, candidate, workers, kind, field="us"):
    """The median of the rounds' ratios to `consume`, with the quartiles."""
    mine = of(results, database, candidate, workers, kind, field)
    base = of(results, database, "consume", workers, kind, field)
    ratios = [mine[r] / base[r] for r in mine if r in base]
    if not ratios:
        return "-"
    if len(ratios) < 2:
        return f"{ratios[0]:.2f}"
    low, _, high = quantiles(ratios, n=4, method="inclusive")
    return f"{median(ratios):.2f} ({low:.2f} to {high:.2f})"


def speed_table(speed, database):
    results = speed["results"]
    columns = [(1, "new"), (1, "duplicates"), (8, "new"), (8, "duplicates")]
    names = {r["candidate"] for r in results if r["database"] == database}
    rows = []
    for candidate in CANDIDATES:
        if candidate.name not in names:
            continue
        row = [candidate.title]
        for workers, kind in columns:
            if candidate.name == "consume":
                row.append(f"{median(of(results, database, 'consume', workers, kind).values()):.0f} µs")
            else:
                row.append(ratio(results, database, candidate.name, workers, kind))
        rows.append(row + [f"{speed['resident_mib'][database][candidate.name]} MiB"])
    head = [DATABASES[database]] + [f"{k}, {w} worker{'s' if w > 1 else ''}" for w, k in columns] + ["memory"]
    return table(head, rows)


def wrong(speed):
    """The messages that the runs for the speed lost, doubled or refused."""
    lines = []
    for r in speed["results"]:
        for kind in ("new", "duplicates"):
            if r[kind]["wrong_effects"] or r[kind]["not_acknowledged"]:
                lines.append(f"- {r['candidate']} on {DATABASES[r['database']]}, round {r['round']}, {r['workers']} "
                             f"workers, {kind}: {r[kind]['wrong_effects']} effects too many, "
                             f"{r[kind]['not_acknowledged']} messages not acknowledged")
    return "\n".join(lines)


def report(machine, faults, speed):
    parts = ["# Peers", table(["", ""], [[name, value] for name, value in machine.items()])]
    if faults:
        parts += ["## Faults", "\n".join(f"- {case}: {text}" for case, text in CASES.items())]
        parts += [faults_table(results, database) for database, results in faults.items()]
    if speed:
        rounds = len({r["round"] for r in speed["results"]})
        parts += [f"## Speed: {rounds} rounds; time of a message as a ratio to txinbox `consume`"]
        parts += [speed_table(speed, d) for d in DATABASES if any(r["database"] == d for r in speed["results"])]
        parts += [wrong(speed)]
    return "\n\n".join(each for each in parts if each) + "\n"
