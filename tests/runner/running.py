"""Runs commands: their output goes to a log, and what is worth seeing also to the terminal."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]

PROGRESS = re.compile(r"^\[(\d+)/(\d+)\] ")  # ninja's
PROGRESS_EVERY = 20  # seconds
LIMIT = 3600  # seconds, for one command


class Failed(Exception):
    """A command failed. The text says what, and where its output is."""


def git(*words):
    """Returns what git prints. Fails with `subprocess.CalledProcessError`."""
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def install(packages):
    """Installs missing packages: those of an argument of install-packages.sh."""
    if subprocess.run([ROOT / "tests" / "install-packages.sh", packages], check=False).returncode != 0:
        raise Failed("the packages could not be installed")


def minutes(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def say(text):
    print(text, flush=True)


class Log:
    """The log of a step or of a part of the gate. It is written anew."""

    def __init__(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.file = path.open("w", errors="replace")

    def name(self):
        return os.path.relpath(self.path, ROOT)

    def text(self, begin=0):
        """What was written since it had `begin` characters."""
        self.file.flush()
        return self.path.read_text(errors="replace")[begin:]

    def size(self):
        return len(self.text())

    def tail(self, lines):
        return "\n".join(self.text().splitlines()[-lines:])


def end_group(process):
    try:
        os.killpg(process.pid, signal.SIGTERM)
    except ProcessLookupError:
        pass


def run(command, log, environment=(), shown=None):
    """Runs the command in ROOT. Returns its status. Ends it with SIGTERM after LIMIT.

    Prints a line of progress for a build now and then, and each line for which `shown` is true.
    """
    log.file.write("$ " + " ".join(map(str, command)) + "\n")
    log.file.flush()
    # Its own group of processes, so that all of them can be ended, also the tests that ctest runs.
    process = subprocess.Popen([str(word) for word in command], cwd=ROOT, env={**os.environ, **dict(environment)},
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace", start_new_session=True)
    limit = threading.Timer(LIMIT, end_group, [process])
    limit.start()
    told = time.monotonic()
    try:
        for line in process.stdout:
            log.file.write(line)
            progress = PROGRESS.match(line)
            if progress and time.monotonic() - told >= PROGRESS_EVERY:
                told = time.monotonic()
                say(f"   built {progress[1]} of {progress[2]}")
            elif shown and shown(line):
                sys.stdout.write("   " + line)
                sys.stdout.flush()
        return process.wait()
    except BaseException:  # Ctrl-C, for example
        end_group(process)
        process.wait()  # the scripts end their servers
        raise
    finally:
        limit.cancel()


def build(preset, targets, log, jobs):
    folder = ROOT / "build" / preset
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise Failed(f"{folder} belongs to another user: remove it")
    if run(["cmake", "--preset", preset], log) != 0:
        raise Failed(f"cmake failed; its output ends:\n{log.tail(20)}\nlog: {log.name()}")
    command = ["cmake", "--build", "--preset", preset, "-j", jobs]
    if run([*command, "--target", *targets], log) != 0:
        text = log.text()
        at = text.find("FAILED: ")
        shown = "\n".join(text[at:].splitlines()[:40]) if at >= 0 else log.tail(20)
        raise Failed(f"the build failed:\n{shown}\nlog: {log.name()}")
