#!/usr/bin/env python3
"""Checks that each include of the sources goes down: from a module to a module in a lower layer. Checks also that only
the modules backend and tables have statements that change rows, and that only public headers export what they declare.

A module is a folder of src/, and the public headers that declare its contents. The layers, and what the folders outside
of the library may include, stand in the tables of ARCHITECTURE.md.

Usage: includes.py [--list]
  --list  also lists the modules with their files and lines
"""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text()

# The layer of each module: the table of ARCHITECTURE.md. Modules in one layer must not include each other.
LAYER = {name: int(layer) for layer, name in re.findall(r"^\| (\d+) \| `(\w+)` \|", ARCHITECTURE, re.MULTILINE)}


def may_include(folder):
    """The internal headers and modules that a folder outside the library may include: its row in ARCHITECTURE.md."""
    row = re.search(rf"^\| `{folder}` \|.*\| (.*) \|$", ARCHITECTURE, re.MULTILINE)[1]
    for name in re.findall(r"`([^`]+)`", row):
        begin, *several = re.split("[{}]", name)
        yield from [begin + one + several[1] for one in several[0].split(",")] if several else [name]


# The public headers of each module. txinbox.hpp includes all of them but native, execute and handler_check, which some services
# do not need.
PUBLIC = {
    "types": "finding pool_options connection_ref consumer_options delivery error incoming listener message operator_action result version",
    "message": "json",
    "backend": "native",
    "schema": "schema",
    "pool": "pool",
    "transaction": "transaction",
    "outbox": "outbox outbox_messages outbox_relay",
    "retention": "retention",
    "admin": "failed_messages inspect operations",
    "soci_adapter": "execute",
    "consume": "handler idempotent tx_consumer",
    "lease": "lease_consumer lease_store",
    "run": "message_of run source",
    "metrics": "metrics",
    "redrive": "redrive",
    "testing": "handler_check",
}
MODULE_OF_PUBLIC = {header: module for module, headers in PUBLIC.items() for header in headers.split()}

TOOLS = {folder: list(may_include(folder)) for folder in ("tools/console", "tools/cli", "tools/sim", "tools/torture")}

# The adapter to SOCI. Nothing else of the library includes SOCI's headers.
SOCI = re.compile(r"include/txinbox/soci/.*|src/(soci_adapter/.*|backend/[^/]+/(soci_database|tls)\.cpp)")

# A string that changes rows. Only WRITERS may have one.
WRITE = re.compile(r'"\(?(INSERT INTO|UPDATE|DELETE FROM) ')
WRITERS = ["backend", "tables"]

# The files that may include CLI11. The tests and the benchmarks may, too.
CLI11 = ["tools/console/command.cpp", "tools/sim/main.cpp", "tools/torture/main.cpp", "tools/torture/options.cpp"]

# The headers of the library that components/shared may include.
SHARED = [f"txinbox/{header}" for header in may_include("components/shared")]

INCLUDE = re.compile(r'^#include (?:"([^"]+)"|<(txinbox/[^>]+)>)', re.MULTILINE)


def sources(folder):
    return sorted(p for p in (ROOT / folder).rglob("*.[ch]pp"))


def module_of(included):
    """The module of an included file; None if it belongs to no module."""
    if included.startswith("txinbox/"):
        return MODULE_OF_PUBLIC.get(pathlib.Path(included).stem)
    return included.split("/")[0]


def complaints():
    for path in sources("src") + sources("include"):
        name = str(path.relative_to(ROOT))
        if name == "include/txinbox/txinbox.hpp":
            continue
        if path.stem not in MODULE_OF_PUBLIC and name.startswith("include/"):
            yield f"{name}: tests/includes.py does not say which module it belongs to"
            continue
        module = MODULE_OF_PUBLIC[path.stem] if name.startswith("include/") else path.relative_to(ROOT / "src").parts[0]
        if module not in LAYER:
            yield f"{name}: no such module in ARCHITECTURE.md"
            continue
        text = path.read_text()
        if "#include <soci/" in text and not SOCI.fullmatch(name):
            yield f"{name}: only the adapter to SOCI may include SOCI's headers"
        if name.startswith("src/") and module not in WRITERS and WRITE.search(text):
            yield f"{name}: only {' and '.join(WRITERS)} may have a statement that changes rows"
        for ours, public in INCLUDE.findall(text):
            other = module_of(ours or public)
            if other != module and not (other in LAYER and LAYER[other] < LAYER[module]):
                yield f"{name}: {module} must not include {ours or public} ({other})"
            database = re.match(r"backend/[^/]+/", ours)
            if database and not name.startswith(f"src/{database[0]}"):
                yield f"{name}: only {database[0]} may include {ours}"
    for folder, allowed in TOOLS.items():
        for path in sources(folder):
            for ours in filter(None, (ours for ours, _ in INCLUDE.findall(path.read_text()))):
                if (ROOT / "tools" / ours).exists():
                    other = "tools/" + ours.split("/")[0]
                    if other not in (folder, "tools/console"):
                        yield f"{path.relative_to(ROOT)}: {folder} must not include {ours}"
                elif ours not in allowed and ours.split("/")[0] not in allowed:
                    yield f"{path.relative_to(ROOT)}: {folder} must not include {ours}"
    yield from complaints_about_components()
    yield from complaints_about_exports()
    for path in sources("src") + sources("include") + sources("tools") + sources("components") + sources("examples"):
        if "#include <CLI/" in path.read_text() and str(path.relative_to(ROOT)) not in CLI11:
            yield f"{path.relative_to(ROOT)}: only {', '.join(CLI11)} may include CLI11"


def complaints_about_exports():
    """A shared library exports what stands between TXINBOX_API_BEGIN and TXINBOX_API_END."""
    public = sources("include") + [p for p in sources("components") if "include" in p.parts]
    private = [p for p in sources("src") + sources("components") if p not in public]
    for path in public:
        if "TXINBOX_NAMESPACE_BEGIN\n" in path.read_text():
            yield f"{path.relative_to(ROOT)}: a public header opens its namespace with TXINBOX_API_BEGIN"
    for path in private:
        if "TXINBOX_API_BEGIN\n" in path.read_text() and path.name != "private_api.hpp":
            yield f"{path.relative_to(ROOT)}: only a public header has TXINBOX_API_BEGIN"


def complaints_about_components():
    # components/shared is not a component: all of them may include it.
    components = sorted(p.parent for p in (ROOT / "components").glob("*/CMakeLists.txt"))
    owner = {str(header.relative_to(c / "include")): c for c in components for header in sources(c / "include")}
    for component in components:
        for path in sources(component):
            for ours, public in INCLUDE.findall(path.read_text()):
                foreign = owner.get(ours or public, component) != component
                if foreign or (ours and (ROOT / "src" / ours).exists()):
                    yield f"{path.relative_to(ROOT)}: a component must not include {ours or public}"
    for path in sources("components/shared"):
        for ours, public in INCLUDE.findall(path.read_text()):
            inside = ours and ((path.parent / ours).exists() or (ROOT / "components" / ours).exists())
            if not inside and (ours or public) not in SHARED:
                yield f"{path.relative_to(ROOT)}: components/shared must not include {ours or public}"


def list_modules():
    for module in sorted(LAYER, key=LAYER.get):
        paths = sources(f"src/{module}")
        lines = [len(p.read_text().splitlines()) for p in paths]
        print(f"{LAYER[module]} {module:12} {len(paths):4} files {sum(lines):6} lines, longest {max(lines, default=0)}")


def main():
    parser = argparse.ArgumentParser(description="Checks that includes only go down.")
    parser.add_argument("--list", action="store_true", help="also list the modules with their files and lines")
    if parser.parse_args().list:
        list_modules()
    found = list(complaints())
    print("\n".join(found), file=sys.stderr)
    sys.exit(1 if found else 0)


main()
