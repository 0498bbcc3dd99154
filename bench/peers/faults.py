"""Tests the effects of a message after a fault. The broker delivers the message again until it is acknowledged."""

import sys
import time

from database import Holder, SPEED_ACCOUNTS
from peer import Peer
from proxy import Proxy

# The order of the columns. Case 5c needs a database in which DDL commits.
CASES = {
    "1": "the handler throws",
    "2": "the process is killed before the commit",
    "2b": "the process is killed after the commit, before the acknowledgement",
    "3": "two deliveries of one key at once",
    "4": "the handler ignores a deadlock",
    "5": "the handler ignores an error of its last statement",
    "5b": "the handler runs COMMIT itself, and then throws",
    "5c": "the handler runs DDL, and then throws",
    "6a": "two keys that differ in a capital letter",
    "6b": "two keys that differ in a trailing space",
    "6c": "two keys that differ in an accent",
    "6d": "two keys of 200 bytes that differ at the end",
    "6e": "two keys of 400 bytes that differ at the end",
    "7": "an answer of the server is lost with its connection",
}
KEYS = {"6a": ("Order-{}", "order-{}"), "6b": ("tail-{}", "tail-{} "), "6c": ("café-{}", "cafe-{}"),
        "6d": ("x" * 190 + "{}a", "x" * 190 + "{}b"), "6e": ("x" * 390 + "{}a", "x" * 390 + "{}b")}
MOST_REQUESTS = 16


def judged(got, wanted, word, detail, again=None):
    """E exact, L lost, D doubled, R refused, P parked: refused for good, and dead-lettered, H hangs: no answer.

    `got` is what the accounts hold when the broker stops to deliver, `again` what they hold after one delivery more.
    """
    lost = sum(max(0, w - g) for g, w in zip(got, wanted))
    doubled = sum(max(0, g - w) for g, w in zip(again or got, wanted))
    if word != "ack":
        letter = {"dead": "P", "no": "H"}.get(word, "R")
        left = sum(got)
        return {"letter": letter, "lost": 0, "doubled": doubled, "left": left, "detail": detail}
    letters = ([f"L{lost}"] if lost else []) + ([f"D{doubled}"] if doubled else [])
    return {"letter": " ".join(letters) or "E", "lost": lost, "doubled": doubled, "left": 0, "detail": detail}


class Faults:
    """All cases of one candidate on one database."""

    def __init__(self, candidate, database):
        self.candidate, self.database = candidate, database
        self.run = str(int(time.time()) % 10_000_000)
        self.account = SPEED_ACCOUNTS
        self.peer = self.start()

    def start(self, **options):
        return Peer(self.candidate, self.database, **options)

    def all(self):
        results = {}
        for case, text in CASES.items():
            if case == "5c" and self.database.kind != "mariadb":
                continue
            self.account += 10
            self.database.run(f"UPDATE bench_account SET n = 0 WHERE id BETWEEN {self.account} AND {self.account + 9}")
            if not self.peer.alive():
                self.peer = self.start()
            try:
                results[case] = getattr(self, "case_" + (case[0] if case[0] == "6" else case))(case)
            except Exception as error:  # one case must not hide the others
                results[case] = {"letter": "?", "detail": f"{type(error).__name__}: {error}"}
            print(f"{self.database.kind:10} {self.candidate.name:24} {case:2} {text:66} {results[case]['letter']:6} "
                  f"{results[case]['detail']}", file=sys.stderr, flush=True)
        self.peer.quit()
        return results

    def key(self, case):
        return f"{self.candidate.name}-{case}-{self.account}-{self.run}"

    def settle(self):
        """If the peer runs handlers later, waits until it has run all of them."""
        if self.candidate.later:
            time.sleep(.3)
            for _ in range(240):
                if self.database.number(self.candidate.unfinished) == 0:
                    return
                time.sleep(.25)

    def redeliver(self, peer, key, fault, tries=6, account=None):
        """Delivers until the answer ends the redeliveries. Returns the answer, and the number of deliveries."""
        for number in range(1, tries + 1):
            said = peer.deliver(key, account or self.account, fault)
            if said.startswith(("ack", "dead", "no answer")):
                break
            time.sleep(.8)
        self.settle()
        return said, number

    def outcome(self, peer, key, first, width, fault):
        """Redelivers after a first delivery, as often as the answers require. Returns the verdict."""
        wanted = [1] * width
        if first.startswith("ack") and not self.candidate.later:
            got = self.database.accounts(self.account, width)
            peer.deliver(key, self.account, fault)
            return judged(got, wanted, "ack", f"first: {first}", self.database.accounts(self.account, width))
        said, number = (first, 1) if first.startswith("dead") else self.redeliver(peer, key, fault)
        return judged(self.database.accounts(self.account, width), wanted, said.split(" ")[0],
                      f"first: {first}; then {said} after {number}")

    def simple(self, case, fault, again="ok", width=1):
        key = self.key(case)
        return self.outcome(self.peer, key, self.peer.deliver(key, self.account, fault), width, again)

    def case_1(self, case):
        return self.simple(case, "throw")

    def restarted(self):
        """Starts the process again after a kill."""
        return self.start(environment={"TXINBOX_PEER_AGAIN": "1"})

    def case_2(self, case):
        key = self.key(case)
        self.peer.quit()  # it must not get the message of the process that is killed
        killed = self.start()
        killed.begin(key, self.account, "hang")
        reached = killed.get("AT", 30)
        killed.kill()
        if reached is None:
            raise RuntimeError("the handler was not reached")
        self.peer = self.restarted()
        said, number = self.redeliver(self.peer, key, "ok")
        return judged(self.database.accounts(self.account), [1], said.split(" ")[0], f"{said} after {number}")

    def case_2b(self, case):
        key = self.key(case)
        self.peer.quit()
        killed = self.start()
        self.redeliver(killed, key, "ok")
        killed.kill()
        self.peer = self.restarted()
        said, _ = self.redeliver(self.peer, key, "ok")
        self.peer.quit()
        self.peer = self.start()
        return judged(self.database.accounts(self.account), [1], said.split(" ")[0], said)

    def case_3(self, case):
        key = self.key(case)
        one = self.peer.begin(key, self.account, "slow")
        time.sleep(.3)
        other = self.peer.begin(key, self.account, "slow")
        said = self.peer.end(one), self.peer.end(other)
        last, _ = self.redeliver(self.peer, key, "ok")
        return judged(self.database.accounts(self.account), [1], last.split(" ")[0], f"{said[0]} | {said[1]}; {last}")

    def case_4(self, case):
        key, holder = self.key(case), Holder(self.database, self.account)
        tag = self.peer.begin(key, self.account, "deadlock")
        if self.peer.get("AT", 30) is None:
            holder.wait()
            raise RuntimeError("the handler was not reached")
        before = len(self.peer.log)
        holder.close_the_circle()
        first = self.peer.end(tag)
        holder.wait()
        self.settle()
        swallowed = len(self.peer.log) - before
        while self.peer.get("AT", .2):  # the lines of the handler's other runs
            pass
        result = self.outcome(self.peer, key, first, 3, "three")
        if swallowed == 0:
            raise RuntimeError(f"the handler met no deadlock: {result}")
        return result

    def case_5(self, case):
        return self.simple(case, "swallow")

    def case_5b(self, case):
        return self.simple(case, "commit", "two", 2)

    def case_5c(self, case):
        return self.simple(case, "ddl", "two", 2)

    def case_6(self, case):
        keys = [each.format(f"{self.account}{self.run}") for each in KEYS[case]]
        said = [self.redeliver(self.peer, key, "ok", tries=2)[0] for key in keys]
        got = self.database.accounts(self.account)[0]
        if "no answer" in said:
            self.peer.kill()  # it may never end by itself
            return judged([got], [2], "no", " | ".join(said))
        for key in keys:
            self.peer.deliver(key, self.account, "ok")
        self.settle()
        again = self.database.accounts(self.account)[0]
        acknowledged = sum(each.startswith("ack") for each in said)
        result = judged([got], [acknowledged], "ack", f"{said[0]} | {said[1]}", [again])
        if acknowledged == 2:
            return result
        return {**result, "letter": "P" if any(each.startswith("dead") for each in said) else "R"}

    def case_7(self, case):
        """Loses the answer to one request of a delivery. Repeats this for each request."""
        if self.candidate.later:
            self.peer.quit()  # it must not get the message without the proxy
        proxy = Proxy(self.database.port)
        options = {"port": proxy.port, "environment": {"TXINBOX_PEER_AGAIN": "1"}}
        peer = self.start(**options)
        peer.deliver(self.key("7-warm"), 4990, "ok")  # lets the process open its connections
        self.settle()
        bad, refused, died, lost, doubled, number = [], 0, 0, 0, 0, 0
        for number in range(1, MOST_REQUESTS + 1):
            key, before = self.key(f"{case}-{number}"), self.database.accounts(self.account)[0]
            proxy.arm(number)
            first = peer.deliver(key, self.account, "ok")
            time.sleep(.5 if self.candidate.later else 0)
            proxy.left = 0
            if not proxy.hits and not self.candidate.later:
                number -= 1
                break  # a delivery has fewer requests
            if not peer.alive():
                died, peer, first = died + 1, self.start(**options), "the process died"
            after_first = self.database.accounts(self.account)[0] - before
            refused += not first.startswith("ack")
            said, _ = self.redeliver(peer, key, "ok")
            change = self.database.accounts(self.account)[0] - before
            if first.startswith("ack") and not self.candidate.later and after_first < 1:
                lost, bad = lost + 1, bad + [f"L at {number}"]
            elif not said.startswith("ack"):
                bad.append(f"R at {number} ({said})")
            elif change != 1:
                lost, doubled = lost + (change < 1), doubled + (change > 1)
                bad.append(f"{'L' if change < 1 else 'D'} at {number}")
        peer.quit()
        proxy.close()
        if self.candidate.later:
            self.peer = self.start()
        detail = f"{number} requests, {refused} not acknowledged at once, {died} processes died; {', '.join(bad)}"
        letters = [f"L{lost}"] * (lost > 0) + [f"D{doubled}"] * (doubled > 0) + ["R"] * any(b[0] == "R" for b in bad)
        return {"letter": " ".join(letters) or "E", "lost": lost, "doubled": doubled, "left": 0, "detail": detail,
                "requests": number, "not_acknowledged_at_once": refused}
