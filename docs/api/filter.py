#!/usr/bin/env python3
"""Prints a page or a public header as Doxygen needs it. Doxygen calls this for each file.

On GitHub a heading has an anchor that is made of its text. Doxygen 1.9 does not know these anchors. So each heading gets
an identifier here, and each link to a page or a heading becomes a reference to it. Doxygen warns if a reference leads
nowhere. A link to another file of the repository becomes its text, because the site does not contain that file.

The index, docs/README.md, becomes the main page. Each of its sections with a table also becomes a page of its own, above
the pages of the table. So the contents of the site are in the order of the index.

Usage: filter.py FILE
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
INDEX = ROOT / "docs" / "README.md"

CODE = r"^```.*?^```$|``[^\n]+?``|`(?P<code>[^`]+)`"
HEADING = r"^(?P<level>#+) (?P<title>[^\n]+)$"
LINK = r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)"
MARKDOWN = re.compile(f"{CODE}|{HEADING}|{LINK}|\"", re.MULTILINE | re.DOTALL)
# Doxygen 1.9 takes the ' of 10'000 for the beginning of a character, and misreads the comment behind it.
DIGIT_SEPARATOR = re.compile(r"(?<=\d)'(?=\d{3})")
PAGE_IN_HEADER = re.compile(r"(?:docs/[\w/-]+|SECURITY)\.md")


def page_id(page):
    """page_guides_batches for docs/guides/batches.md."""
    if page == INDEX:
        return "index"
    name = page.relative_to(ROOT).with_suffix("").as_posix().lower()
    return "page_" + name.removeprefix("docs/").replace("/", "_")


def anchor(title):
    """The anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def reference(page, target):
    """What Doxygen calls the target of a link; None if the site does not contain it."""
    path, _, fragment = target.partition("#")
    linked = (page.parent / path).resolve() if path else page
    if linked.is_relative_to(ROOT / "include"):
        return linked.relative_to(ROOT / "include").as_posix()
    if linked.suffix != ".md":
        return None
    return page_id(linked) + (f"-{fragment}" if fragment else "")


def converted_heading(page, match, anchors):
    heading = match[0].replace("`", "")
    if match["level"] == "#":
        return heading if page == INDEX else f"{heading} {{#{page_id(page)}}}"
    name = anchor(match["title"])
    repeated = anchors.count(name)
    anchors.append(name)
    return f"{heading} {{#{page_id(page)}-{name}{f'-{repeated}' if repeated else ''}}}"


def converted_link(page, match, command):
    target = match["target"]
    if "://" in target:
        return match[0]
    if match["image"]:
        return f"![{match['text']}]({pathlib.PurePath(target).name})"
    text = re.sub(r"\s+", " ", match["text"].replace("`", ""))  # Doxygen reads the text of a reference on one line only
    name = reference(page, target)
    return text if name is None else f'@{command} {name} "{text}"'


def converted(page, text, command="ref"):
    anchors = []

    def replace(match):
        if match["title"]:
            return converted_heading(page, match, anchors)
        if match["target"]:
            return converted_link(page, match, command)
        if match["code"]:  # Doxygen lets a ' end `code`, but not ``code``
            code = re.sub(r"^http::", "%http::", match["code"])  # or Doxygen makes it a link to an address
            return f"``{code}``"
        return "&quot;" if match[0] == '"' else match[0]  # Doxygen converts nothing between quotes

    return MARKDOWN.sub(replace, text)


def sections(index):
    """A page for each section of the index."""
    for section in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        table = "".join(line for line in body.splitlines(keepends=True) if line.startswith("|"))
        name = anchor(title.partition(":")[0])
        yield f"\n@page section_{name} {title}\n\n{converted(INDEX, table, 'subpage')}"


def main():
    file = pathlib.Path(sys.argv[1]).resolve()
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".md":
        text = converted(file, text)
    else:
        text = DIGIT_SEPARATOR.sub("", text)
        text = PAGE_IN_HEADER.sub(lambda match: f'@ref {page_id(ROOT / match[0])} "{match[0]}"', text)
    sys.stdout.write(text)
    if file == INDEX:
        sys.stdout.writelines(sections(file.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
