#!/usr/bin/env python3
"""Lists the public API: every type, function, enumerator and option of the public headers, and how many there are.

tests/api_docs.sh compares the list with tests/api.txt, so that each change of the API is seen in a change of this file.

Usage: api.py XML_FOLDER                    prints the list; XML_FOLDER is what Doxygen has made of the headers
       api.py XML_FOLDER --compare FILE     fails if the list is not what the file contains
"""

import argparse
import collections
import difflib
import pathlib
import re
import sys
import xml.etree.ElementTree as xml

MEMBERS = {"function": "functions", "enum": "types", "typedef": "types", "variable": "variables"}


def text_of(element):
    """The text of an element without its tags, with single spaces, and with none behind < and before >."""
    text = re.sub(r"\s+", " ", "".join(element.itertext())) if element is not None else ""
    return re.sub(r" (?=>)|(?<=<) ", "", text).strip()


def signature(member):
    kind, name = member.get("kind"), member.findtext("name")
    type_text = text_of(member.find("type"))
    template = member.find("templateparamlist")
    if kind == "function":
        parts = ["template" if template is not None else "", type_text, name + text_of(member.find("argsstring"))]
        return " ".join(filter(None, parts))
    if kind == "enum":
        values = [value.findtext("name") for value in member.findall("enumvalue")]
        return f"enum {name} {{ {', '.join(values)} }}"
    if kind == "typedef":
        return f"using {name} = {type_text}"
    return f"{type_text} {name} {text_of(member.find('initializer'))}".strip()


class Api:
    """The declarations of the headers. An option is a member of a struct of options; other structs have variables."""

    def __init__(self):
        self.lines = collections.defaultdict(list)  # of each header: (line, depth, text)
        self.counts = collections.Counter()

    def add(self, element, text, depth):
        location = element.find("location")
        self.lines[location.get("file")].append((int(location.get("line")), depth, text))

    def add_member(self, member, depth, is_option):
        kind = member.get("kind")
        if kind not in MEMBERS or member.get("prot") != "public":
            return
        if member.findtext("name").startswith("~") or member.findtext("argsstring", "").endswith("=delete"):
            return
        what = MEMBERS[kind]
        self.counts["options" if what == "variables" and is_option else what] += 1
        self.counts["enumerators"] += len(member.findall("enumvalue"))
        self.add(member, signature(member), depth)

    def add_compound(self, compound):
        kind, name = compound.get("kind"), compound.findtext("compoundname")
        if kind == "namespace":
            for member in compound.iterfind("sectiondef/memberdef"):
                self.add_member(member, 1, False)
        if kind not in ("class", "struct") or compound.get("prot") != "public":
            return
        self.counts["types"] += 1
        short = name.removeprefix("txinbox::")
        self.add(compound, f"{kind} {short}", 1)
        is_option = bool(re.search(r"(Options|Policy|Terms|RecentKeys)$", short))
        for member in compound.iterfind("sectiondef/memberdef"):
            self.add_member(member, 2, is_option)

    def text(self):
        """The list, with one line for each thing, in the order of its header."""
        self.counts["headers"] = len(self.lines)
        order = ("headers", "types", "functions", "enumerators", "options", "variables")
        lines = ["The public API, made by tests/api.py.", "", ", ".join(f"{self.counts[each]} {each}" for each in order)]
        for file in sorted(self.lines):
            lines += ["", file] + ["  " * depth + text for _, depth, text in sorted(self.lines[file], key=lambda e: e[0])]
        return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, metavar="XML_FOLDER")
    parser.add_argument("--compare", type=pathlib.Path, metavar="FILE")
    arguments = parser.parse_args()
    api = Api()
    for file in sorted(arguments.folder.glob("*.xml")):
        if file.name.startswith(("class", "struct", "namespace")):
            for compound in xml.parse(file).getroot().iterfind("compounddef"):
                api.add_compound(compound)
    text = api.text()
    if arguments.compare is None:
        print(text, end="")
        return 0
    before = arguments.compare.read_text()
    if before == text:
        return 0
    sys.stderr.writelines(difflib.unified_diff(before.splitlines(True), text.splitlines(True), str(arguments.compare),
                                               "the headers", n=0))
    print(f"\nThe public API has changed. If it should, write the new list:\n"
          f"    tests/api.py {arguments.folder} > {arguments.compare}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
