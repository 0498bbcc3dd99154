"""Measures the time of a new message and of a duplicate, with 1 and with 8 workers. The candidates take turns."""

import sys
import time

from peer import Peer

RUNS = {1: 300, 8: 1200}  # the number of messages of a round, by the number of workers
BATCHES = 4  # a candidate that consumes batches gets this many times more messages
SPEED = {"TXINBOX_PEER_READ_COMMITTED": "1"}  # all candidates use the isolation level of txinbox
WARM_UP = {"java": 6000, "node": 1000, "go": 2000, "c++": 2000}


def say(text):
    print(text, file=sys.stderr, flush=True)


def both(peer, database, prefix, count, workers):
    """Consumes new messages, and then the same messages again. Checks that each took effect once."""
    before = database.total()
    new = peer.run(prefix, count, workers)
    between = database.total()
    duplicates = peer.run(prefix, count, workers)
    after = database.total()
    for name, result, effects, wanted in (("new", new, between - before, count),
                                          ("duplicates", duplicates, after - between, 0)):
        if result is None:
            raise TimeoutError(f"{peer.candidate.name} on {database.kind}, {name}: {workers} workers take too long")
        result["wrong_effects"] = effects - wanted
        if effects != wanted or result["not_acknowledged"]:
            say(f"== {peer.candidate.name} on {database.kind}, {name}: {effects} effects of {wanted}, "
                f"{result['not_acknowledged']} not acknowledged")
    return {"new": new, "duplicates": duplicates}


def measure(candidates, databases, rounds, cpu, save):
    """Rounds of all candidates in turns. Calls `save` with all results after each round."""
    run = str(int(time.time()) % 10_000_000)
    peers, results = {}, []
    try:
        for database in databases:
            for candidate in candidates:
                if candidate.speed and database.kind in candidate.databases:
                    say(f"== warm up: {candidate.name} on {database.kind}")
                    peer = peers[database.kind, candidate.name] = Peer(candidate, database, cpu=cpu, environment=SPEED)
                    count = WARM_UP[candidate.language] * (BATCHES if candidate.batch > 1 else 1)
                    both(peer, database, f"warm-{candidate.name}-{run}", count // (10 if candidate.later else 1), 8)
                    both(peer, database, f"warm1-{candidate.name}-{run}", 300, 1)
        for number in range(rounds):
            say(f"== round {number + 1} of {rounds}")
            for database in databases:
                names = [c for c in candidates if (database.kind, c.name) in peers]
                if not names:
                    continue
                turn = number % len(names)
                for candidate in names[turn:] + names[:turn]:
                    peer = peers[database.kind, candidate.name]
                    for workers, count in RUNS.items():
                        count *= BATCHES if candidate.batch > 1 else 1
                        prefix = f"{candidate.name}-{number}-{workers}-{run}"
                        try:
                            result = both(peer, database, prefix, count, workers)
                        except TimeoutError as error:
                            say(f"== {error}")
                            peer.kill()
                            peer = peers[database.kind, candidate.name] = Peer(candidate, database, cpu=cpu,
                                                                               environment=SPEED)
                            continue
                        results.append({"database": database.kind, "candidate": candidate.name, "round": number,
                                        "workers": workers, **result})
            memory = {kind: {name: peer.resident_mib() for (k, name), peer in peers.items() if k == kind}
                      for kind, _ in peers}
            save({"results": results, "resident_mib": memory})
    finally:
        for peer in peers.values():
            peer.quit()
