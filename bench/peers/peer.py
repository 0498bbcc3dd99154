"""The candidates, and a process of one of them."""

import json
import os
import queue
import re
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("TXINBOX_PEERS_BUILD", HERE.parent.parent / "build" / "peers"))
PROGRAM = Path(os.environ.get("TXINBOX_PEERS_PROGRAM", HERE.parent.parent / "build/release/bench/txinbox_bench_peer"))
BOTH = ("postgresql", "mariadb")


@dataclass(frozen=True)
class Candidate:
    name: str  # its name for --only
    title: str
    language: str  # c++, java, go or node
    version: str  # the name of its version in pom.xml, go.mod or package.json
    databases: tuple = BOTH
    faults: bool = True
    speed: bool = True
    later: bool = False  # whether it stores the message and runs the handler later
    batch: int = 1
    unfinished: str = ""  # the SQL that counts the handlers that a `later` peer must still run


CANDIDATES = [
    Candidate("consume", "txinbox `consume`", "c++", ""),
    Candidate("batch", "txinbox `consume_batch` of 100", "c++", "", faults=False, batch=100),
    Candidate("set", "txinbox `consume_batch` of 100, one statement", "c++", "", faults=False, batch=100),
    Candidate("by-hand", "by hand", "c++", ""),
    Candidate("eventuate", "Eventuate Tram", "java", "eventuate.tram"),
    Candidate("spring", "Spring Integration, one transaction", "java", "spring.integration"),
    Candidate("spring-plain", "Spring Integration, no transaction", "java", "spring.integration", speed=False),
    Candidate("camel", "Camel, one transaction", "java", "camel"),
    Candidate("camel-plain", "Camel, no transaction", "java", "camel", speed=False),
    Candidate("pg-transactional-outbox", "pg-transactional-outbox", "node", "pg-transactional-outbox", ("postgresql",),
              later=True, unfinished="SELECT count(*) FROM peer_inbox.inbox "
                                     "WHERE processed_at IS NULL AND abandoned_at IS NULL"),
    Candidate("river", "River", "go", "github.com/riverqueue/river", ("postgresql",), later=True,
              unfinished="SELECT count(*) FROM river_job "
                         "WHERE state NOT IN ('completed', 'discarded', 'cancelled')"),
    Candidate("watermill", "Watermill", "go", "github.com/ThreeDotsLabs/watermill"),
]


def adapter(candidate):
    """The command of a candidate's adapter; None if it was not built."""
    if candidate.language == "c++":
        return [str(PROGRAM), candidate.name] if PROGRAM.exists() else None
    if candidate.language == "java":
        path = BUILD / "java" / "classpath"
        if not path.exists():
            return None
        return ["java", "-XX:+UseSerialGC", "-Xmx512m", "-cp", f"{BUILD}/java/classes:{path.read_text().strip()}",
                "peers.Main", candidate.name]
    if candidate.language == "go":
        return [f"{BUILD}/go-adapter", candidate.name] if (BUILD / "go-adapter").exists() else None
    if not (BUILD / "node" / "node_modules" / "pg-transactional-outbox").exists():
        return None
    return ["node", str(BUILD / "node" / "adapter.js")]


def version(candidate):
    """The version of the peer's release, from the file that pins it."""
    if candidate.language == "java":
        text = (HERE / "java" / "pom.xml").read_text(encoding="utf-8")
        return re.search(f"<{re.escape(candidate.version)}>(.*)</", text)[1].removesuffix(".RELEASE")
    if candidate.language == "go":
        text = (HERE / "go" / "go.mod").read_text(encoding="utf-8")
        return re.search(rf"{re.escape(candidate.version)} v(\S+)", text)[1]
    if candidate.language == "node":
        text = (HERE / "node" / "package.json").read_text(encoding="utf-8")
        return json.loads(text)["dependencies"][candidate.version]
    return ""


class Peer:
    """A running adapter."""

    def __init__(self, candidate, database, port=None, cpu=None, environment=None):
        self.candidate, self.tags, self.log = candidate, 0, []
        self.lines = queue.Queue()
        errors = BUILD / "log"
        errors.mkdir(parents=True, exist_ok=True)
        pin = ["taskset", "-c", cpu] if cpu else []
        with open(errors / f"{candidate.name}.{database.kind}", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                pin + adapter(candidate), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                bufsize=1, env={**os.environ, **database.adapter_environment(port), **(environment or {})})
        threading.Thread(target=self.read, daemon=True).start()
        if self.get("ready", 120) is None:
            self.kill()
            raise RuntimeError(f"{candidate.name} does not start; see {errors}/{candidate.name}.{database.kind}")

    def read(self):
        for line in self.process.stdout:
            if line.startswith("#"):
                self.log.append(line)
            else:
                self.lines.put(line.rstrip("\n"))
        self.lines.put("END")

    def send(self, *fields):
        try:
            self.process.stdin.write("\t".join(map(str, fields)) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def get(self, prefix, timeout):
        """The next line with this beginning. None after the time-out or at the process's end. Keeps other lines."""
        end, others = time.monotonic() + timeout, []
        try:
            while True:
                line = self.lines.get(timeout=max(end - time.monotonic(), .001))
                if line == "END":
                    others.append(line)
                    return None
                if line.startswith(prefix):
                    return line
                others.append(line)
        except queue.Empty:
            return None
        finally:
            for line in others:
                self.lines.put(line)

    def begin(self, key, account, fault):
        """Begins a delivery, and returns its tag."""
        self.tags += 1
        self.send("one", self.tags, key, account, fault)
        return self.tags

    def end(self, tag, timeout=45):
        """The answer to the broker for a delivery."""
        line = self.get(f"one {tag} ", timeout)
        return line.split(" ", 2)[2] if line else "no answer"

    def deliver(self, key, account, fault):
        return self.end(self.begin(key, account, fault))

    def run(self, prefix, count, workers):
        self.send("run", prefix, 0, count, workers)
        line = self.get("done ", 90)
        if line is None:
            return None
        total, acknowledged, _, p50, p99 = line.split()[1:]
        return {"us": float(total) / count, "p50": float(p50), "p99": float(p99),
                "not_acknowledged": count - int(acknowledged)}

    def resident_mib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1]) // 1024

    def alive(self):
        return self.process.poll() is None

    def kill(self):
        self.process.kill()
        self.process.wait()

    def quit(self):
        self.send("quit")
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.kill()
