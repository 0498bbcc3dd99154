#!/usr/bin/env python3
"""Runs the expressions of ops/grafana.json and ops/alerts.yml on a Prometheus server, and draws the dashboard's data.

Usage: dashboard.py PROMETHEUS_URL SECONDS [PICTURE]
  SECONDS  how long the server has scraped
  PICTURE  an SVG file: the panels, drawn by gnuplot

It fails if an expression is wrong, has no result, or has a result that is no number.
"""

import json
import math
import re
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
COLOURS = ["#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#BBBBBB"]


def ask(server, path, **values):
    query = urllib.parse.urlencode(values)
    try:
        with urllib.request.urlopen(f"{server}/api/v1/{path}?{query}", timeout=30) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        return {"error": json.load(error)["error"]}


def expression_of(target):
    """The expression as Grafana sends it for all consumers."""
    return target["expr"].replace("$consumer", ".*").replace("$__rate_interval", "15s")


def panels():
    board = json.loads((ROOT / "ops" / "grafana.json").read_text(encoding="utf-8"))
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def problem_of(server, expression):
    answer = ask(server, "query", query=expression)
    if "error" in answer:
        return answer["error"]
    values = [float(each["value"][1]) for each in answer["result"]]
    if not values:
        return "no result"
    return "a result that is no number" if all(math.isnan(value) for value in values) else None


def check(server):
    wrong = []
    count = 0
    for panel in panels():
        for target in panel["targets"]:
            count += 1
            problem = problem_of(server, expression_of(target))
            if problem:
                wrong.append(f"panel '{panel['title']}': {target['expr']}: {problem}")
    for group in ask(server, "rules")["groups"]:
        for rule in group["rules"]:
            count += 1
            if rule["health"] != "ok":
                wrong.append(f"alert {rule['name']}: {rule['health']}: {rule.get('lastError', '')}")
    print(f"count: {count} expressions of the dashboard and the alerts")
    return wrong


def name_of(metric, form):
    for label, value in metric.items():
        form = form.replace("{{" + label + "}}", value)
    return re.sub(r"{{\w+}}", "all", form) or "sum"  # a purge of all consumers has no label


def plot(server, panel, start, end):
    """The commands of gnuplot for one panel."""
    blocks, curves = [], []
    for target in panel["targets"]:
        answer = ask(server, "query_range", query=expression_of(target), start=start, end=end, step=3)
        for series in answer["result"]:
            block = f"$d{panel['id']}_{len(curves)}"
            points = [f"{float(at) - start:.1f} {value}" for at, value in series["values"] if value != "NaN"]
            blocks.append(f"{block} << EOD\n" + "\n".join(points or ["0 NaN"]) + "\nEOD")
            name = name_of(series["metric"], target["legendFormat"])
            colour = COLOURS[len(curves) % len(COLOURS)]
            curves.append(f'{block} using 1:2 with lines lw 2 lc rgb "{colour}" title "{name}" noenhanced')
    title = panel["title"].replace('"', "")
    return "\n".join([f'set title "{title}" noenhanced', *blocks, "plot " + ", ".join(curves)])


def draw(server, seconds, picture):
    shown = [panel for panel in panels() if panel["type"] == "timeseries"]
    columns = 3
    rows = math.ceil(len(shown) / columns)
    end = time.time()
    head = [
        f"set terminal svg size 1200,{rows * 220} font 'sans,9' background rgb 'white'",
        f"set output '{picture}'",
        "set encoding utf8",
        "set border 3",
        "set tics nomirror",
        'set grid ytics lt 1 lc rgb "#DDDDDD"',
        "set key below font ',8'",
        "set yrange [0:*]",
        f"set xrange [0:{seconds}]",
        "set xlabel 'seconds' offset 0,0.8",
        f"set multiplot layout {rows},{columns}",
    ]
    script = "\n".join([*head, *(plot(server, panel, end - seconds, end) for panel in shown), "unset multiplot"])
    subprocess.run(["gnuplot", "-"], input=script, text=True, check=True)


def main():
    server, seconds = sys.argv[1], float(sys.argv[2])
    wrong = check(server)
    if len(sys.argv) > 3:
        draw(server, seconds, sys.argv[3])
    for each in wrong:
        print(each, file=sys.stderr)
    return 1 if wrong else 0


sys.exit(main())
