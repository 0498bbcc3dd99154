#!/usr/bin/python3
"""Checks that each block of YAML in the documents is YAML, that each alert of ops/alerts.yml is complete and in the table
of docs/operations/watching.md, and that ops/grafana.json is JSON without a panel twice.

Debian's package python3-yaml is only for /usr/bin/python3.

Usage: docs_yaml.py
"""

import json
import pathlib
import re
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```ya?ml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def errors_in_alerts():
    """What is wrong in the alerts. promtool checks the expressions (tests/watching.sh)."""
    listed = set(re.findall(r"^\| `(Txinbox\w+)` \|", (ROOT / "docs/operations/watching.md").read_text(), re.MULTILINE))
    for group in yaml.safe_load((ROOT / "ops/alerts.yml").read_text())["groups"]:
        for rule in group["rules"]:
            name = rule["alert"]
            if not {"alert", "expr", "labels", "annotations"} <= rule.keys():
                yield f"ops/alerts.yml: {name} has only {', '.join(rule)}"
            elif rule["labels"].keys() != {"severity"} or rule["annotations"].keys() != {"summary", "description"}:
                yield f"ops/alerts.yml: {name} needs a severity, a summary and a description"
            if name not in listed:
                yield f"docs/operations/watching.md: the table lacks {name}"
            listed.discard(name)
    for name in listed:
        yield f"docs/operations/watching.md: ops/alerts.yml has no {name}"


def errors_in_dashboard():
    panels = json.loads((ROOT / "ops/grafana.json").read_text())["panels"]
    for key in ("id", "title"):
        values = [panel[key] for panel in panels]
        if len(set(values)) < len(values):
            yield f"ops/grafana.json: two panels have the same {key}"


def check(page):
    """The number of blocks, and the errors."""
    errors = []
    text = page.read_text()
    blocks = list(BLOCK.finditer(text))
    for match in blocks:
        line = text.count("\n", 0, match.start(1)) + 1
        try:
            yaml.safe_load(match[1])
        except yaml.YAMLError as error:
            errors.append(f"line {line}: {error}")
    return len(blocks), [f"{page.relative_to(ROOT)}, block at {error}" for error in errors]


def main():
    found, errors = 0, []
    for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("components/**/*.md")]):
        count, more = check(page)
        found += count
        errors += more
    errors += [*errors_in_alerts(), *errors_in_dashboard()]
    print(*errors, sep="\n", end="\n" if errors else "")
    print(f"{found} blocks of YAML in the documents")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
