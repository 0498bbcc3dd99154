"""The raw figures of a run, and the medians that the report is made of."""

import json
from statistics import median, quantiles

DATABASES = {"sqlite3": "SQLite", "mariadb": "MariaDB", "mysql": "MySQL", "postgresql": "PostgreSQL", "redis": "Redis"}
# The figures of the section sizes.
SIZED = {
    "microseconds": "A new key",
    "duplicate_microseconds": "A duplicate",
    "purge_microseconds": "A purged row",
}
PLACEMENTS = {"two-cpus": "two CPUs", "one-cpu": "one CPU"}
DURABILITIES = {"durable": "durable", "relaxed": "not durable"}


def middle_half(values):
    """The lower and the upper quartile. With few values, the smallest and the greatest value."""
    if len(values) < 4:
        return min(values), max(values)
    lower, _, upper = quantiles(values, n=4, method="inclusive")
    return lower, upper


class Ratios:
    """The ratios of two variants in each round. So a delay of a whole round does not change the result."""

    def __init__(self, numerators, denominators):
        self.values = [a / b for a, b in zip(numerators, denominators, strict=True)]
        self.median = median(self.values)

    def __str__(self):
        lower, upper = middle_half(self.values)
        return f"{digits(self.median)} ({digits(lower)}–{digits(upper)})"


def digits(value):
    """The number with three significant digits."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


class Run:
    """All measurements of a run, by section, database, placement and durability."""

    def __init__(self, lines):
        self.measurements = [json.loads(line) for line in lines]

    def find(self, section, database=None, placement=None, durability=None):
        wanted = {"section": section, "database": database, "placement": placement, "durability": durability}
        found = [m for m in self.measurements if all(v is None or m[k] == v for k, v in wanted.items())]
        order = [list(DATABASES), list(PLACEMENTS), list(DURABILITIES)]
        keys = ["database", "placement", "durability"]
        return sorted(found, key=lambda m: [names.index(m[key]) for names, key in zip(order, keys)])


def name_of(measurement, durability=True):
    """A name such as "MariaDB, two CPUs, durable". SQLite always uses one CPU."""
    parts = [DATABASES[measurement["database"]]]
    if measurement["database"] != "sqlite3":
        parts.append(PLACEMENTS[measurement["placement"]])
    if durability:
        parts.append(DURABILITIES[measurement["durability"]])
    return ", ".join(parts)


def table(header, rows, left=1):
    """A Markdown table with aligned columns. The first `left` columns are left-aligned, the others right-aligned."""
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]

    def line(cells):
        padded = [c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths))]
        return "| " + " | ".join(padded) + " |"

    rule = ["-" * w if i < left else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    return "\n".join([line(header), line(rule), *(line(row) for row in rows)])
