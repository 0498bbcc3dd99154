"""Tells mkdocs which pages the site has. mkdocs.yml names this file.

The pages stay where they are, and keep their places relative to each other: the site has the layout of the repository. So
the links between pages are valid as they are. A link to a public header becomes a link to its page of the API, and a link
to another file of the repository becomes a link to repo_url. `mkdocs build --strict` fails if a link leads nowhere.

The navigation has the order of the index, docs/README.md, as the pages of Doxygen have it.
"""

import pathlib
import posixpath
import re
import sys

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Link

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs" / "api"))

from filter import CODE, LINK, anchor  # noqa: E402  docs/api/filter.py

INDEX = "docs/README.md"
LINK_TO_PAGE = re.compile(r"\[([^\]]+)\]\(([^)\s#]+\.md)\)")
MARKDOWN = re.compile(f"{CODE}|{LINK}|^(?P<indent> {{2,3}})(?=\\S)", re.MULTILINE | re.DOTALL)
HEADER = re.compile(r"(?:components/\w+/)?include/.*\.hpp")
API = "api/"


def pages_of(text):
    """The entries of the navigation for the links in a text of the index."""
    for title, target in LINK_TO_PAGE.findall(text):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(INDEX), target))
        yield path if title.endswith(".md") else {title: path}  # mkdocs takes the title of the page


def navigation(index):
    """The list at the top of the index, a section for each table, and the links at the end."""
    top, *sections = re.split(r"^## ", index, flags=re.MULTILINE)
    end = []
    yield {"Home": "README.md"}
    yield {"All pages": INDEX}
    yield from pages_of(top)
    for section in sections:
        title, _, body = section.partition("\n")
        rows = [line for line in body.splitlines() if line.startswith("|")]
        yield {title.partition(":")[0]: [page for row in rows for page in pages_of(row.split("|")[1])]}
        end += pages_of("\n".join(line for line in body.splitlines() if line not in rows))
    yield from end


def paths_in(items):
    for item in items:
        if isinstance(item, dict):
            item = next(iter(item.values()))
        yield from [item] if isinstance(item, str) else paths_in(item)


def header_page(path):
    """The page of Doxygen for a header: dead__letter_8hpp.html for dead_letter.hpp."""
    return posixpath.basename(path).replace("_", "__").replace(".", "_8") + ".html"


def on_config(config):
    config.nav = list(navigation((ROOT / INDEX).read_text(encoding="utf-8")))
    config.mdx_configs["toc"]["slugify"] = lambda title, _: anchor(title)
    # With repo_url, the theme asks the server of the repository for its newest version and its popularity.
    config.extra["repository"] = config.repo_url
    config.repo_url = None
    return config


def on_files(files, config):
    """The pages of the navigation, the images of docs/, and the pages of the API."""
    def file(path, source=None):
        made = File(path, str(ROOT), config.site_dir, config.use_directory_urls)
        if source:
            made.abs_src_path = str(source)
        return made

    pages = list(paths_in(config.nav))
    found = {path.relative_to(ROOT).as_posix()
             for path in [*ROOT.glob("docs/**/*.md"), *ROOT.glob("components/*/README.md")]}
    if not found <= set(pages):
        raise PluginError(f"{INDEX} does not name {', '.join(sorted(found - set(pages)))}")
    images = [path.relative_to(ROOT).as_posix() for kind in ("svg", "png") for path in ROOT.glob(f"docs/**/*.{kind}")]
    api = ROOT / config.extra["api"]
    if not (api / "index.html").is_file():
        raise PluginError(f"{api} has no pages of the API: tests/site.sh makes them")
    of_theme = [each for each in files if not each.abs_src_path.startswith(config.docs_dir)]
    return Files([*of_theme, *map(file, pages + images + config.extra_css),
                  *(file(API + path.relative_to(api).as_posix(), path)
                    for path in sorted(api.rglob("*")) if path.is_file())])


def on_nav(nav, config, files):
    """The links that lead to no page of Markdown."""
    reference = next(item for item in nav.items if item.title == "Reference")
    api = Link("Classes and functions", API + "index.html")
    api.parent = reference
    reference.children.insert(1, api)
    nav.items.append(Link("Sources", config.extra["repository"]))
    return nav


def on_page_markdown(markdown, page, config, files):
    """Converts the links to files, and what Python-Markdown reads otherwise than GitHub: lists in lists, which it needs to
    be indented by four spaces, and a | in code in a table."""
    folder = posixpath.dirname(page.file.src_uri)

    def converted(match):
        if match["indent"]:
            return "    "
        if match["code"]:
            in_table = markdown.startswith("|", markdown.rfind("\n", 0, match.start()) + 1)
            return match[0].replace(r"\|", "|") if in_table else match[0]
        target = match["target"]
        if not target or match["image"] or ":" in target:
            return match[0]
        path = posixpath.normpath(posixpath.join(folder, target.partition("#")[0]))
        if path in files or not (ROOT / path).exists():
            return match[0]  # mkdocs warns if there is no such file
        if HEADER.fullmatch(path):
            return f"[{match['text']}]({posixpath.relpath(API + header_page(path), folder or '.')})"
        return f"[{match['text']}]({config.extra['repository'].rstrip('/')}/{config.extra['sources']}{path})"

    return MARKDOWN.sub(converted, markdown)
