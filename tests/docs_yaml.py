#!/usr/bin/python3
"""Checks that each block of YAML in the documents is YAML, and that each rule for Prometheus is complete.

Debian's package python3-yaml is only for /usr/bin/python3.

Usage: docs_yaml.py
"""

import pathlib
import re
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```ya?ml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def errors_in_rules(block):
    """What is wrong in the groups of rules for Prometheus."""
    if not isinstance(block, dict):
        return
    for group in block.get("groups", []):
        for rule in group["rules"]:
            if not {"alert", "expr"} <= rule.keys() <= {"alert", "expr", "for"}:
                yield f"a rule has {', '.join(rule)}"


def check(page):
    """The number of blocks, and the errors."""
    errors = []
    text = page.read_text()
    blocks = list(BLOCK.finditer(text))
    for match in blocks:
        line = text.count("\n", 0, match.start(1)) + 1
        try:
            errors += [f"line {line}: {error}" for error in errors_in_rules(yaml.safe_load(match[1]))]
        except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
            errors.append(f"line {line}: {error}")
    return len(blocks), [f"{page.relative_to(ROOT)}, block at {error}" for error in errors]


def main():
    found, errors = 0, []
    for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("components/**/*.md")]):
        count, more = check(page)
        found += count
        errors += more
    if not found:
        errors.append("no document has a block of YAML")
    print(*errors, sep="\n", end="\n" if errors else "")
    print(f"{found} blocks of YAML")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
