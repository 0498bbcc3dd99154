#!/usr/bin/env python3
"""Checks the links of the site: each link inside the site leads to a file, and to an anchor if it has one. No page loads a
script, a style sheet, an image, a font or a frame from another host.

Usage: links.py SITE_FOLDER
"""

import collections
import html.parser
import pathlib
import re
import sys
import urllib.parse

LOADED = {("script", "src"), ("img", "src"), ("img", "srcset"), ("source", "src"), ("source", "srcset"), ("video", "src"),
          ("audio", "src"), ("iframe", "src"), ("frame", "src"), ("embed", "src"), ("object", "data"), ("input", "src"),
          ("image", "href"), ("image", "xlink:href"), ("use", "href"), ("use", "xlink:href")}
# The other values of rel load nothing.
LOADING_RELATIONS = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "dns-prefetch", "modulepreload", "manifest"}
IN_CSS = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")

# Doxygen 1.9 itself makes links to members and lists that it hides.
HIDDEN_BY_DOXYGEN = re.compile(r"a[0-9a-f]{32}|nested-classes")


class Page(html.parser.HTMLParser):
    """The anchors of a page, its links, and what it loads."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.loads, self.canonical, self.in_style = set(), [], [], None, False
        self.feed(path.read_text(encoding="utf-8"))
        self.close()

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.in_style = tag == "style"
        self.anchors.update(attributes[name] for name in ("id", "name") if attributes.get(name))
        if tag in ("a", "area") and attributes.get("href"):
            self.links.append(attributes["href"])
        if tag == "link":
            relations = set((attributes.get("rel") or "").split())
            if "canonical" in relations:
                self.canonical = attributes["href"]
            if relations & LOADING_RELATIONS:
                self.loads.append(attributes["href"])
        self.loads += [value for name, value in attrs if value and (tag, name) in LOADED]
        self.loads += loaded_by_css(attributes.get("style") or "")

    handle_startendtag = handle_starttag

    def handle_data(self, data):
        if self.in_style:
            self.loads += loaded_by_css(data)

    def handle_endtag(self, tag):
        self.in_style = False


def loaded_by_css(text):
    return [one or other for one, other in IN_CSS.findall(text)]


class Site:
    def __init__(self, folder):
        self.folder = folder
        self.pages = {path: Page(path) for path in sorted(folder.rglob("*.html"))}
        # 404.html can be shown at each address, so its links begin with the path of the site's address.
        address = self.pages[folder / "index.html"].canonical or ""
        self.base = posix_folder(urllib.parse.urlsplit(address).path)
        self.counts = collections.Counter()

    def error(self, file, link):
        """What is wrong with a link inside the site."""
        parts = urllib.parse.urlsplit(link)
        path = urllib.parse.unquote(parts.path)
        if not path:
            target = file
        elif path.startswith("/"):
            if not path.startswith(self.base):
                return f"is not below {self.base}"
            target = self.folder / path[len(self.base):]
        else:
            target = (file.parent / path).resolve()
        if target.is_dir():
            target /= "index.html"
        if not target.is_relative_to(self.folder) or not target.is_file():
            return "leads to no file"
        fragment = urllib.parse.unquote(parts.fragment)
        if fragment and target in self.pages:
            self.counts["anchors"] += 1
            hidden = file.parent == self.folder / "api" and HIDDEN_BY_DOXYGEN.fullmatch(fragment)
            if fragment not in self.pages[target].anchors and not hidden:
                return "leads to no anchor"
        return None

    def errors(self):
        for file, page in self.pages.items():
            for link in page.links:
                parts = urllib.parse.urlsplit(link)
                if parts.scheme in ("http", "https"):
                    yield file, link, None if parts.netloc else "has no host"
                elif not parts.scheme and not parts.netloc:
                    self.counts["links"] += 1
                    yield file, link, self.error(file, link)
            for link in page.loads:
                yield file, link, self.error_of_loaded(file, link)
        for file in sorted(self.folder.rglob("*.css")):
            for link in loaded_by_css(file.read_text(encoding="utf-8")):
                yield file, link, self.error_of_loaded(file, link)

    def error_of_loaded(self, file, link):
        parts = urllib.parse.urlsplit(link)
        if parts.scheme in ("data", "javascript"):
            return None
        if parts.scheme or parts.netloc:
            return "is loaded from another host"
        self.counts["loaded"] += 1
        return self.error(file, link)


def posix_folder(path):
    """The path up to its last slash."""
    return path[:path.rfind("/") + 1] or "/"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    site = Site(pathlib.Path(sys.argv[1]).resolve())
    wrong = sorted({f"{file.relative_to(site.folder)}: {link} {why}" for file, link, why in site.errors() if why})
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"count: {len(site.pages)} pages of the site")
    print(f"count: {site.counts['links']} links inside the site")
    print(f"count: {site.counts['anchors']} of them to an anchor")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
