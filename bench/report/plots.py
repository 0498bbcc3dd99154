"""Draws the plots with gnuplot, each as SVG and as PNG."""

import subprocess
from pathlib import Path
from statistics import median

from figures import DATABASES, Ratios, digits

# People with colour blindness can also distinguish these colours (P. Tol's "bright").
COLOURS = {"sqlite3": "#4477AA", "mariadb": "#EE6677", "mysql": "#CCBB44", "postgresql": "#228833"}
GREY = "#BBBBBB"

COMMON = """
set encoding utf8
set border 3
set tics nomirror
set grid ytics lt 1 lc rgb "#DDDDDD"
set key top left Left reverse noautotitle
set style fill solid noborder
"""


def durable_apart(run, section="transactions"):
    """One durable measurement for each database. With a server, the client and the server have different CPUs."""
    found = {m["database"]: m for m in run.find(section, durability="durable")
             if m["placement"] == ("one-cpu" if m["database"] == "sqlite3" else "two-cpus")}
    return [found[name] for name in DATABASES if name in found]


def bars(found, variants, value, title, ylabel, extra=""):
    """Groups of bars, one group for each database. Each bar shows its value."""
    width = 0.8 / len(variants)
    blocks, plots, tics = [], [], []
    for v, (variant, (name, colour)) in enumerate(variants.items()):
        rows = []
        for i, m in enumerate(found):
            x = i + (v - (len(variants) - 1) / 2) * width
            rows.append(f'{x} {value(m, variant)} {width * 0.92} "{digits(value(m, variant))}"')
        blocks.append(f"$d{v} << EOD\n" + "\n".join(rows) + "\nEOD")
        plots.append(f'$d{v} using 1:2:3 with boxes lc rgb "{colour}" title "{name}"')
        plots.append(f"$d{v} using 1:2:4 with labels offset 0,0.6 font ',9'")
    for i, m in enumerate(found):
        tics.append(f'"{DATABASES[m["database"]]}" {i}')
    return "\n".join([
        COMMON, extra, f'set title "{title}"', f'set ylabel "{ylabel}"', f"set xtics ({', '.join(tics)}) scale 0",
        f"set xrange [-0.6:{len(found) - 0.4}]", *blocks, "plot " + ", ".join(plots)])


def one_message(run):
    found = durable_apart(run)
    variants = {
        "by_hand_no_dedup": ("by hand, no dedup", "#DDDDDD"),
        "by_hand": ("by hand with dedup, no guard", GREY),
        "by_hand_soci": ("by hand, SOCI one-off statements", "#CCBB44"),
        "consume": ("consume", "#4477AA"),
    }
    if not found:
        return None

    def value(m, variant):
        new = m["result"]["new"]
        return Ratios(new[variant], new["by_hand"]).median

    return bars(found, variants, value, "Time of one message, durable, relative to by hand with dedup", "ratio",
                "set yrange [0:*<2]\nset offsets 0, 0, 0.5, 0")


def batches(run):
    found = durable_apart(run)
    variants = {
        "consume": ("consume, one at a time", "#66CCEE"),
        "batch_10": ("batch of 10", "#4477AA"),
        "batch_100": ("batch of 100", "#224466"),
        "by_hand_batch_100": ("the best batch of 100 by hand", GREY),
    }
    if not found:
        return None

    def value(m, variant):
        return 1e6 / median(m["result"]["new"][variant])

    return bars(found, variants, value, "Messages a second, durable, one thread", "messages a second",
                "set logscale y\nset yrange [100:*]\nset format y '%.0f'\nset offsets 0, 0, graph 0.3, 0")


def curves(found, series, title, xlabel, ylabel, extra=""):
    """A line for each database and series. `series` yields (name, dash type, {x: y})."""
    blocks, plots = [], []
    for i, m in enumerate(found):
        for j, (name, dash, points) in enumerate(series(m)):
            rows = "\n".join(f"{x} {y}" for x, y in points.items())
            blocks.append(f"$d{i}_{j} << EOD\n{rows}\nEOD")
            plots.append(f'$d{i}_{j} using 1:2 with linespoints lw 2 pt 7 ps 0.6 dt {dash} '
                         f'lc rgb "{COLOURS[m["database"]]}" title "{name}"')
    return "\n".join([COMMON, f'set title "{title}"', f'set xlabel "{xlabel}"', f'set ylabel "{ylabel}"', extra, *blocks,
                      "plot " + ", ".join(plots)])


def threads(run):
    found = run.find("threads")
    if not found:
        return None

    def series(m):
        rates = m["result"]["messages_per_second"]
        name = DATABASES[m["database"]]
        yield f"{name}, consume", 1, {n: median(r) for n, r in rates["consume"].items()}
        yield f"{name}, by hand with dedup", 2, {n: median(r) for n, r in rates["by_hand"].items()}

    return curves(found, series, "Messages a second by threads, durable", "threads", "messages a second",
                  "set logscale x 2\nset yrange [0:*]\nset key outside right")


def sizes(run):
    found = run.find("sizes")
    if not found:
        return None

    def series(m):
        yield DATABASES[m["database"]], 1, {n: median(t) for n, t in m["result"]["microseconds"].items()}

    return curves(found, series, "Time of one message with a random key, durable", "rows in the inbox", "µs",
                  "set logscale x\nset format x '10^{%L}'\nset yrange [0:*]\nset key outside right")


def purge(run):
    """The time by percentile. A percentile with more nines is further right, and the longest time is at the end."""
    found = run.find("purge")
    if not found:
        return None
    ways = {"alone": ("no purge", 3), "purge": ("a purge", 1), "purge_without_rest": ("without rest", 2)}

    def series(m):
        for way, (name, dash) in ways.items():
            yield (f"{DATABASES[m['database']]}, {name}", dash,
                   dict(enumerate(value / 1000 for value in m["result"]["percentiles"][way].values())))

    tics = ", ".join(f'"{name}" {i}' for i, name in enumerate(["median", "90 %%", "99 %%", "99.9 %%", "longest"]))
    return curves(found, series, "Time of one message while a purge runs, durable", "of the messages", "ms",
                  f"set logscale y\nset xtics ({tics})\nset key outside right")


def growth(curve, xlabel, has_zero=False, logscale_y=False):
    """Returns a function that draws how the time of one message grows."""

    def draw_growth(run):
        found = run.find("growth")
        if not found:
            return None

        def series(m):
            yield DATABASES[m["database"]], 1, {n: median(t) for n, t in m["result"][curve].items()}

        # A logarithmic axis has no place for 0.
        x = "set nonlinear x via log(x + 1) inverse exp(x) - 1" if has_zero else "set logscale x"
        tics = ", ".join(f'"{int(n):,}" {n}' for n in found[0]["result"][curve])
        return curves(found, series, "Time of one message, durable", xlabel, "µs",
                      f"{x}\nset xtics ({tics})\nset {'logscale y' if logscale_y else 'yrange [0:*]'}\n"
                      "set key outside right")

    return draw_growth


PLOTS = {
    "one-message": one_message,
    "batches": batches,
    "threads": threads,
    "sizes": sizes,
    "purge": purge,
    "growth-batch": growth("batch", "messages in a batch", logscale_y=True),
    "growth-batch-at-once": growth("batch_at_once", "messages in a batch with one handler", logscale_y=True),
    "growth-failing": growth("failing", "keys of 100 that fail in each batch", has_zero=True),
    "growth-workers": growth("workers", "workers of run"),
    "growth-lanes": growth("lanes", "lanes that wait beside four healthy ones", has_zero=True),
    "growth-outbox": growth("outbox", "messages in the outbox"),
}
TERMINALS = {
    "svg": "svg size 760,420 font 'sans,11' background rgb 'white'",
    "png": "pngcairo size 1140,630 font 'DejaVu Sans,13' background rgb 'white'",
}


def draw(run, folder):
    """Draws the plots of the measured sections. Returns their names."""
    drawn = []
    for name, make in PLOTS.items():
        script = make(run)
        for suffix, terminal in TERMINALS.items():
            file = Path(folder) / f"{name}.{suffix}"
            file.unlink(missing_ok=True)
            if script:
                head = f"set terminal {terminal}\nset output '{file}'\n"
                subprocess.run(["gnuplot", "-"], input=head + script, text=True, check=True)
        if script:
            drawn.append(name)
    return drawn
