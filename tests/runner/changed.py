"""Which files the gate lints: those that differ from the commit in tests/lint_base.txt, and files that include them.

On that commit, the step "lint" found nothing. When the step passes again, write the new commit there.
"""

import json
import os
import re
import subprocess

from running import ROOT, git, say

LINTED = re.compile(r"^(src|tools|components/[^/]+/src)/")
INCLUDING = 30  # at most this number of files that only include a changed header


def changed_files():
    """The files that differ from the base, or None if this clone does not have that commit."""
    base = (ROOT / "tests" / "lint_base.txt").read_text().split()[0]
    try:
        git("cat-file", "-e", f"{base}^{{commit}}")
    except subprocess.CalledProcessError:
        return None
    lists = git("diff", "--name-only", "--diff-filter=d", base), git("ls-files", "--others", "--exclude-standard")
    return {name for each in lists for name in each.splitlines()}


def units(folder):
    """The linted sources of the build, by the file in ROOT."""
    commands = json.loads((folder / "compile_commands.json").read_text())
    files = (os.path.relpath(os.path.join(each["directory"], each["file"]), ROOT) for each in commands)
    return sorted({file for file in files if LINTED.match(file)})


def includes(folder, names):
    """The files of ROOT that each of these sources includes, as the compiler reported them."""
    listed = subprocess.run(["ninja", "-C", folder, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    found = {}
    for block in listed.split("\n\n"):
        files = {os.path.relpath(os.path.join(folder, line.strip()), ROOT) for line in block.splitlines()[1:]}
        for name in files & names:
            found.setdefault(name, set()).update(files)
    return found


def files_to_lint(folder):
    all_units = units(folder)
    changed = changed_files()
    if changed is None:
        say("   this clone lacks the commit of tests/lint_base.txt, so every file is linted")
        return all_units
    if ".clang-tidy" in changed:
        say("   .clang-tidy has changed, so every file is linted")
        return all_units
    chosen = [file for file in all_units if file in changed]
    headers = {file for file in changed if file.endswith(".hpp")}
    included = includes(folder, set(all_units))
    for file in chosen:
        headers -= included.get(file, set())
    including = sorted((file for file in all_units if file not in chosen and included.get(file, set()) & headers),
                       key=lambda file: (-len(included[file] & headers), file))
    # First, one file for each header. Most findings in a header appear in each file that includes it.
    more = []
    for file in including:
        if included[file] & headers:
            more.append(file)
            headers -= included[file]
    more += [file for file in including if file not in more][:max(0, INCLUDING - len(more))]
    left = len(including) - len(more)
    say(f"   {len(chosen)} files have changed, and {len(more)} include changed headers" +
        (f"; --step lint also checks {left} that include them" if left else ""))
    return chosen + more
