"""The targets, each with the measured value."""

from statistics import median

from figures import DATABASES, SIZED, Ratios, digits, name_of, table
from sections import loop_microseconds, stuck_lanes

NOT_MEASURED = "not measured"

DURABLE = "`consume` / by hand with dedup, durable"
RELAXED = "`consume` / by hand with dedup, not durable"
ROUND_TRIP = "the same, durable, with a round trip of 1 ms"
DUPLICATE = "duplicate from the database / by hand"
OWN = "`consume` on the service's own connection / by hand with dedup, durable"
OWN_DUPLICATE = "duplicate on the service's own connection / by hand"
THREADS = "messages a second with several threads / by hand, durable"
NATIVE = "a native connection / a session of SOCI"
NATIVE_INSTRUCTIONS = "the same, in instructions of the client"
FROM_MEMORY = "duplicates from memory, a second"
BATCH = "throughput, batch of 100 / one at a time"
SLOW_DISK = "the same with 2 ms more for each fsync"
BEST_BATCH = "batch of 100 / the best batch by hand, time"
AT_ONCE = "throughput, batch of 100 with one handler / one at a time"
AT_ONCE_SLOW_DISK = "the same with 2 ms more for each fsync (one handler)"
AT_ONCE_ROUND_TRIP = "the same with a round trip of 1 ms (one handler)"
AT_ONCE_BEST = "batch of 100 with one handler / the best by hand, time"
HTTP = "HTTP requests a second, with a guard / without"
HTTP_COPIES = "a copy of a request in flight, the longest"
HTTP_OTHERS = "another request meanwhile, the longest"
HTTP_REQUEST = "a request with a guard on a connection that stays open, median"
WEBHOOK = "messages a second to a webhook, one after the other"
LEASE = "a lease in a database / its two transactions by hand"
REDIS = "a lease in Redis / two EVALSHA by hand"
OUTBOX_ADD = "a handler with `Outbox::add` / with the INSERT by hand"
OUTBOX_DRAIN = "messages a second from a backlog of the outbox"
OUTBOX_SNAPSHOT = "a relay's batch behind 200,000 removed rows / on a fresh table"
OUTBOX_FAILING = "healthy messages a second with 5,000 failing keys in front / without"
OUTBOX_WAKE = "from commit to publish with `wake`, median"
OUTBOX_POLL = "from commit to publish without `wake`, median"
KAFKA = "Kafka: `run` in batches of 100 / by hand, messages a second"
KAFKA_WORKERS = "Kafka: `run` with 4 workers / with one, messages a second"
RABBITMQ = "RabbitMQ: the source / the client library, messages a second"
ROCKETMQ = "RocketMQ: the source, messages a second"
LOOP_COST = "`run` on messages from memory / `consume_batch`, more for a message"
LOOP_LANES = "healthy lanes beside stuck ones / alone, messages a second"
SIZES = "a large table / a small one"


class Target:
    def __init__(self, what, where, limit, value, at_least=False, unit=""):
        self.what, self.where = what, where
        self.limit, self.value, self.at_least, self.unit = limit, value, at_least, unit

    def met(self):
        if self.value is None:
            return NOT_MEASURED
        return "yes" if (self.value >= self.limit if self.at_least else self.value <= self.limit) else "**no**"

    def row(self):
        bound = f"{'≥' if self.at_least else '≤'} {digits(self.limit)}{self.unit}"
        value = "–" if self.value is None else digits(self.value) + self.unit
        return [self.what, self.where, value, bound, self.met()]


def time_ratio(measurement, variant, base, kind="new"):
    times = measurement["result"][kind]
    return Ratios(times[variant], times[base]).median


def single(run, durability, limit_of):
    what = DURABLE if durability == "durable" else RELAXED
    for m in run.find("transactions", durability=durability):
        yield Target(what, name_of(m, durability=False), limit_of(m), time_ratio(m, "consume", "by_hand"))


def durable_limit(measurement):
    if measurement["database"] == "sqlite3":
        return 1.05
    return 1.00 if measurement["placement"] == "two-cpus" else 1.08


def own_connection(run, what, kind, limit):
    for m in run.find("transactions", durability="durable"):
        yield Target(what, name_of(m, durability=False), limit, time_ratio(m, "consume_native", "by_hand", kind))


def threads(run):
    for m in run.find("threads"):
        rates = m["result"]["messages_per_second"]
        for n in ("8", "16"):
            if n in rates["consume"] and m["database"] != "sqlite3":
                yield Target(THREADS, f"{DATABASES[m['database']]}, {n} threads", 1.00,
                             Ratios(rates["consume"][n], rates["by_hand"][n]).median, at_least=True)


def round_trip(run):
    for m in run.find("round-trip"):
        yield Target(ROUND_TRIP, name_of(m, durability=False), 0.90 if m["database"] == "mysql" else 0.80,
                     time_ratio(m, "consume", "by_hand"))


def duplicates(run):
    for m in run.find("transactions", durability="durable"):
        limit = 1.30 if m["database"] == "postgresql" else 1.10
        yield Target(DUPLICATE, name_of(m, durability=False), limit, time_ratio(m, "consume", "by_hand", "duplicate"))


def native(run):
    for m in run.find("transactions", durability="durable"):
        yield Target(NATIVE, name_of(m, durability=False), 1.00, time_ratio(m, "consume_native", "consume_session"))


def native_instructions(run):
    for m in run.find("instructions"):
        counts = m["result"]["instructions"]
        yield Target(NATIVE_INSTRUCTIONS, DATABASES[m["database"]], 1.00,
                     round(counts["consume_native"] / counts["consume_session"], 2))


def leases(run):
    for m in run.find("transactions"):
        if "lease" in m["result"]["new"]:
            yield Target(LEASE, name_of(m), 1.25, time_ratio(m, "lease", "by_hand_lease"))


def http(run):
    for m in run.find("http"):
        rates = m["result"]["requests_per_second"]
        yield Target(HTTP, DATABASES[m["database"]], 0.85 if m["database"] == "sqlite3" else 0.65,
                     Ratios(rates["guarded"], rates["plain"]).median, at_least=True)


def http_copies(run):
    for m in run.find("http"):
        yield Target(HTTP_COPIES, DATABASES[m["database"]], 20, max(m["result"]["in_flight"]["duplicate_ms"]),
                     unit=" ms")


def http_others(run):
    for m in run.find("http"):
        yield Target(HTTP_OTHERS, DATABASES[m["database"]], 50, max(m["result"]["in_flight"]["other_ms"]), unit=" ms")


def http_request(run):
    for m in run.find("http"):
        yield Target(HTTP_REQUEST, DATABASES[m["database"]], 3, median(m["result"]["request_ms"]), unit=" ms")


def webhook(run):
    for m in run.find("http"):
        yield Target(WEBHOOK, DATABASES[m["database"]], 2_000, median(m["result"]["webhook_per_second"]), at_least=True)


def redis(run):
    for m in run.find("redis"):
        times = m["result"]["microseconds"]
        yield Target(REDIS, name_of(m), 1.3, Ratios(times["lease_consumer"], times["by_hand"]).median)


def outbox_add(run):
    for m in run.find("outbox"):
        times = m["result"]["microseconds"]
        yield Target(OUTBOX_ADD, DATABASES[m["database"]], 1.10, Ratios(times["add"], times["by_hand"]).median)


def outbox_drain(run):
    for m in run.find("outbox"):
        drain = m["result"]["drain"]
        # The target is for a million rows. A smaller table has no target.
        value = drain["messages"] / drain["seconds"] if drain["messages"] >= 1_000_000 else None
        yield Target(OUTBOX_DRAIN, DATABASES[m["database"]], 7_000 if m["database"] == "mariadb" else 20_000, value,
                     at_least=True)


def outbox_failing(run):
    for m in run.find("outbox"):
        failing = m["result"]["failing"]
        rates = failing["messages_per_second"]
        ratio = Ratios(rates["with"], rates["without"]).median if failing["failing"] >= 5_000 else None
        yield Target(OUTBOX_FAILING, DATABASES[m["database"]], 0.8, ratio, at_least=True)


def outbox_snapshot(run):
    for m in run.find("outbox"):
        for snapshot in m["result"].get("snapshots", []):
            times = snapshot["milliseconds"]
            ratio = median(times["held"]) / median(times["fresh"]) if snapshot["deleted"] >= 200_000 else None
            yield Target(OUTBOX_SNAPSHOT, f"{DATABASES[m['database']]}, {snapshot['keys']:,} keys", 3, ratio)


def outbox_delay(run, way, what, limit):
    for m in run.find("outbox"):
        yield Target(what, DATABASES[m["database"]], limit, median(m["result"]["delay_ms"][way]), unit=" ms")


def from_memory(run):
    for m in run.find("redeliveries"):
        rate = 1e6 / median(m["result"]["microseconds"]["from_memory"])
        yield Target(FROM_MEMORY, name_of(m, durability=False), 1_000_000, rate, at_least=True)


def batches(run):
    limits = {"sqlite3": 8, "mariadb": 7, "mysql": 7, "postgresql": 6}
    for m in run.find("transactions", durability="durable"):
        yield Target(BATCH, name_of(m, durability=False), limits[m["database"]], time_ratio(m, "consume", "batch_100"),
                     at_least=True)


def slow_disk(run):
    for m in run.find("slow-disk"):
        yield Target(SLOW_DISK, name_of(m, durability=False), 40, time_ratio(m, "consume", "batch_100"), at_least=True)


def best_batch(run):
    for m in run.find("transactions", durability="durable"):
        yield Target(BEST_BATCH, name_of(m, durability=False), 1.15, time_ratio(m, "batch_100", "by_hand_batch_100"))


def at_once(run):
    for m in run.find("transactions", durability="durable"):
        yield Target(AT_ONCE, name_of(m, durability=False), 20 if m["placement"] == "two-cpus" else 15,
                     time_ratio(m, "consume", "batch_100_at_once"), at_least=True)


def at_once_slow_disk(run):
    for m in run.find("slow-disk"):
        yield Target(AT_ONCE_SLOW_DISK, name_of(m, durability=False), 55, time_ratio(m, "consume", "batch_100_at_once"),
                     at_least=True)


def at_once_round_trip(run):
    for m in run.find("round-trip"):
        yield Target(AT_ONCE_ROUND_TRIP, name_of(m, durability=False), 50,
                     time_ratio(m, "consume", "batch_100_at_once"), at_least=True)


def at_once_best(run):
    for m in run.find("transactions", durability="durable"):
        yield Target(AT_ONCE_BEST, name_of(m, durability=False), 1.25,
                     time_ratio(m, "batch_100_at_once", "by_hand_batch_100_at_once"))


def kafka(run):
    for m in run.find("kafka", database="postgresql"):
        rates = m["result"]["messages_per_second"]
        yield Target(KAFKA, DATABASES[m["database"]], 5, Ratios(rates["run"], rates["by_hand"]).median, at_least=True)


def kafka_workers(run):
    for m in run.find("kafka", database="postgresql"):
        rates = m["result"]["messages_per_second"]
        yield Target(KAFKA_WORKERS, DATABASES[m["database"]], 2.5, Ratios(rates["run_4_workers"], rates["run"]).median,
                     at_least=True)


def rabbitmq(run):
    for m in run.find("rabbitmq", database="postgresql"):
        rates = m["result"]["messages_per_second"]
        ratio = Ratios(rates["source_alone"], rates["client_alone"]).median
        yield Target(RABBITMQ, DATABASES[m["database"]], 0.8, ratio, at_least=True)


def rocketmq(run):
    for m in run.find("rocketmq", database="postgresql"):
        rate = median(m["result"]["messages_per_second"]["source_alone"])
        yield Target(ROCKETMQ, DATABASES[m["database"]], 5_000, rate, at_least=True)


def loop_cost(run):
    # With a server, the loop works while the database does. So the difference is the loop's cost only with SQLite.
    for m in run.find("loop", database="sqlite3"):
        yield Target(LOOP_COST, DATABASES[m["database"]], 5, loop_microseconds(m), unit=" µs")


def loop_lanes(run):
    for m in run.find("loop"):
        for healthy, stuck, without, with_stuck in stuck_lanes(m):
            if stuck != "0":
                where = f"{DATABASES[m['database']]}, {stuck} of {int(healthy) + int(stuck)} stuck"
                yield Target(LOOP_LANES, where, 0.9, Ratios(with_stuck, without).median, at_least=True)


def sizes(run):
    for m in run.find("sizes"):
        for what, name in SIZED.items():
            times = m["result"].get(what, {})
            for n, words in (("10000000", "10 million"), ("100000000", "100 million")):
                if n in times:
                    yield Target(f"{name.lower()}: a table of {words} rows / of a thousand", name_of(m, durability=False),
                                 1.3, Ratios(times[n], times["1000"]).median)


def command(run):
    for m in run.find("command"):
        seconds = m["result"]["seconds"]
        yield Target(f"the command on {m['result']['lines']:,} lines / C by hand", DATABASES[m["database"]],
                     1.5 if m["database"] == "sqlite3" else 1.0, Ratios(seconds["command"], seconds["by_hand"]).median)


def memory(run):
    for m in run.find("memory"):
        yield Target(f"memory growth over {m['result']['messages']:,} messages", DATABASES[m["database"]], 1.0,
                     max(m["result"]["growth_kib"]) / 1024, unit=" MiB")


def all_targets(run):
    """All rows of the list. A row without a measurement says that it was not measured."""
    groups = {
        DURABLE: single(run, "durable", durable_limit),
        RELAXED: single(run, "relaxed", lambda m: 1.15),
        ROUND_TRIP: round_trip(run),
        DUPLICATE: duplicates(run),
        OWN: own_connection(run, OWN, "new", 1.15),
        OWN_DUPLICATE: own_connection(run, OWN_DUPLICATE, "duplicate", 1.00),
        THREADS: threads(run),
        NATIVE: native(run),
        NATIVE_INSTRUCTIONS: native_instructions(run),
        FROM_MEMORY: from_memory(run),
        BATCH: batches(run),
        SLOW_DISK: slow_disk(run),
        BEST_BATCH: best_batch(run),
        AT_ONCE: at_once(run),
        AT_ONCE_SLOW_DISK: at_once_slow_disk(run),
        AT_ONCE_ROUND_TRIP: at_once_round_trip(run),
        AT_ONCE_BEST: at_once_best(run),
        HTTP: http(run),
        HTTP_COPIES: http_copies(run),
        HTTP_OTHERS: http_others(run),
        HTTP_REQUEST: http_request(run),
        WEBHOOK: webhook(run),
        LEASE: leases(run),
        REDIS: redis(run),
        OUTBOX_ADD: outbox_add(run),
        OUTBOX_DRAIN: outbox_drain(run),
        OUTBOX_FAILING: outbox_failing(run),
        OUTBOX_SNAPSHOT: outbox_snapshot(run),
        OUTBOX_WAKE: outbox_delay(run, "wake", OUTBOX_WAKE, 10),
        OUTBOX_POLL: outbox_delay(run, "poll", OUTBOX_POLL, 100),
        KAFKA: kafka(run),
        KAFKA_WORKERS: kafka_workers(run),
        RABBITMQ: rabbitmq(run),
        ROCKETMQ: rocketmq(run),
        LOOP_COST: loop_cost(run),
        LOOP_LANES: loop_lanes(run),
        SIZES: sizes(run),
        "the command on a file / C by hand": command(run),
        "memory growth": memory(run),
    }
    rows = []
    for what, targets in groups.items():
        rows += [t.row() for t in targets] or [[what, "–", "–", "–", NOT_MEASURED]]
    return rows


def targets_table(run):
    return table(["What", "Where", "Measured", "Target", "Met"], all_targets(run), left=2)
