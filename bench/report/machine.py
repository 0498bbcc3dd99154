"""The machine on which the figures were measured."""

import os
import subprocess
from datetime import datetime, timezone
from statistics import median

from figures import DATABASES, table


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        for line in info:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return "unknown"


def memory_gib():
    with open("/proc/meminfo", encoding="utf-8") as info:
        return int(next(line for line in info if line.startswith("MemTotal")).split()[1]) / 1024 / 1024


def system_name():
    with open("/etc/os-release", encoding="utf-8") as info:
        return next(line for line in info if line.startswith("PRETTY_NAME=")).split("=", 1)[1].strip().strip('"')


def commit():
    """The commit of the measured sources, if git knows it."""
    def git(*arguments):
        folder = os.path.dirname(os.path.abspath(__file__))
        done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""
    name = git("rev-parse", "--short", "HEAD")
    changed = git("status", "--porcelain", "--", ":/include", ":/src", ":/bench", ":/migrations")
    return name + (" with changes" if name and changed else "")


def today():
    return datetime.now(timezone.utc).strftime("%Y-%m-%d")


def settings_text(settings):
    return ", ".join(f"{name} = {value}" for name, value in settings.items())


def machine(run, seconds, revision):
    described = run.find("describe")
    rows = [
        ["CPU", f"{cpu_model()}, {os.cpu_count()} cores"],
        ["Memory", f"{memory_gib():.0f} GiB"],
        ["System", f"{system_name()}, kernel {os.uname().release}, {os.uname().machine}"],
    ]
    if described:
        first = described[0]["result"]
        sync = median(m["result"]["fdatasync_us"] for m in described)
        rows += [
            ["Disk", f"4 KiB appended and fdatasync: {sync:.0f} µs (median)"],
            ["Compiler", f"g++ {first['compiler']}, CMAKE_BUILD_TYPE Release"],
            ["SOCI", first["soci"].replace("_", ".")],
        ]
    for m in described:
        rows.append([DATABASES[m["database"]], f"{m['result']['version']}: {settings_text(m['result']['settings'])}"])
    version = f"txinbox {described[0]['result']['txinbox']}" if described else "txinbox"
    rows.append(["Measured", f"{version}, commit {revision}, {today()}, in {seconds} seconds"])
    return table(["", ""], rows, left=2)
