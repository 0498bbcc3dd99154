"""The driver: tests all candidates with faults, measures their speed in rounds, and writes the results.

For bench/peers/run.sh.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "report"))

import speed  # noqa: E402
from database import Database  # noqa: E402
from faults import Faults  # noqa: E402
from machine import commit, cpu_model  # noqa: E402
from peer import CANDIDATES, adapter, version  # noqa: E402
from report import report  # noqa: E402


def parsed():
    parser = argparse.ArgumentParser(prog="bench/peers")
    parser.add_argument("--only", action="append", default=[], choices=[c.name for c in CANDIDATES])
    parser.add_argument("--database", action="append", default=[], choices=["postgresql", "mariadb"])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--cpu", help="the clients' CPU in the rounds for the speed")
    parser.add_argument("--faults", action="store_true")
    parser.add_argument("--speed", action="store_true")
    return parser.parse_args()


def described(candidates, databases):
    """The machine and the versions."""
    def first_line(*command):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return ((done.stdout or done.stderr).splitlines() or ["none"])[0]
    languages = {c.language for c in candidates}
    rows = {"CPU": f"{cpu_model()}, {os.cpu_count()} cores", "System": f"{platform.system()} {platform.release()}",
            "txinbox": f"commit {commit()}"}
    for candidate in candidates:
        if version(candidate):
            rows[candidate.title.split(",")[0]] = version(candidate)
    for language, name, command in (("java", "Java", ("java", "-version")), ("go", "Go", ("go", "version")),
                                    ("node", "Node.js", ("node", "--version"))):
        if language in languages:
            rows[name] = first_line(*command)
    rows.update({d.kind: d.version() for d in databases})
    rows["Measured"] = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    return rows


def load(path):
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def save(path, value):
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main():
    options = parsed()
    both = options.faults == options.speed
    candidates = []
    for candidate in CANDIDATES:
        if options.only and candidate.name not in options.only:
            continue
        if adapter(candidate) is None:
            print(f"bench/peers: without {candidate.name}: it was not built", file=sys.stderr)
        else:
            candidates.append(candidate)
    databases = [Database(kind) for kind in options.database or ["postgresql", "mariadb"]]
    options.output.mkdir(parents=True, exist_ok=True)
    faults_file, speed_file = options.output / "faults.json", options.output / "speed.json"
    if both or options.faults:
        results = load(faults_file)  # earlier runs with --only have results of other candidates
        for database in databases:
            for candidate in candidates:
                if candidate.faults and database.kind in candidate.databases:
                    results.setdefault(database.kind, {})[candidate.name] = Faults(candidate, database).all()
                    save(faults_file, results)
    if both or options.speed:
        speed.measure(candidates, databases, options.rounds, options.cpu, partial(save, speed_file))
    machine = {**load(options.output / "machine.json"), **described(candidates, databases)}
    save(options.output / "machine.json", machine)
    text = report(machine, load(faults_file), load(speed_file))
    (options.output / "peers.md").write_text(text, encoding="utf-8")
    print(text)


main()
