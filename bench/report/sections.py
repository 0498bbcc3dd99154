"""The tables of the report, one for each section."""

from math import log10
from statistics import median

from figures import DATABASES, DURABILITIES, SIZED, Ratios, digits, name_of, table

VARIANTS = {
    "by_hand_no_dedup": "1. by hand, no dedup",
    "by_hand": "2. by hand, dedup, no guard",
    "by_hand_soci": "3. the same with SOCI one-off statements",
    "consume": "4. `consume`",
    "consume_soci_handler": "4. `consume`, the handler's UPDATE one-off by SOCI",
    "consume_execute": "4. `consume`, the handler's UPDATE by `execute`",
    "consume_session": "4. `consume` on the caller's SOCI session",
    "consume_native": "4. `consume` on the caller's native connection",
    "batch_10": "5. `consume_batch` of 10",
    "batch_100": "5. `consume_batch` of 100",
    "batch_100_at_once": "5. `consume_batch` of 100, one handler for all",
    "by_hand_batch_100": "6. the best batch of 100 by hand, an UPDATE each",
    "by_hand_batch_100_at_once": "6. the same, one UPDATE for all",
}
ABSENT = "This run did not measure it."


def or_absent(rows, header, left=1):
    return table(header, rows, left) if rows else ABSENT


def transactions(run, kind):
    """A table for each durability and placement. It compares all variants with the variant by hand with dedup."""
    parts = []
    for durability, durability_name in DURABILITIES.items():
        found = run.find("transactions", durability=durability)
        if not found:
            continue
        header = [durability_name[0].upper() + durability_name[1:]]
        for m in found:
            header += [name_of(m, durability=False), "ratio"]
        rows = []
        for variant, name in VARIANTS.items():
            row = [name]
            for m in found:
                times = m["result"][kind]
                if variant in times:
                    row += [digits(median(times[variant])) + " µs", Ratios(times[variant], times["by_hand"])]
            if len(row) > 1:
                rows.append(row)
        parts.append(table(header, rows))
    return "\n\n".join(parts) or ABSENT


def leases(run):
    """The two transactions of a lease, compared with the same two by hand."""
    rows = []
    for m in run.find("transactions"):
        new = m["result"]["new"]
        if "lease" in new:
            rows.append([name_of(m), *(digits(median(new[v])) + " µs" for v in ("by_hand_lease", "lease")),
                         Ratios(new["lease"], new["by_hand_lease"])])
    return or_absent(rows, ["Lease in a database", "By hand", "`LeaseConsumer`", "ratio"])


def in_short(run):
    """Medians, and their quotients: a reader can check them by dividing."""
    rows = []
    for m in run.find("transactions", durability="durable"):
        new, again = m["result"]["new"], m["result"]["duplicate"]
        row = [name_of(m, durability=False)]
        for times in (new, again):
            by_hand, consume = median(times["by_hand"]), median(times["consume"])
            row += [digits(by_hand) + " µs", digits(consume) + " µs", digits(consume / by_hand)]
        rows.append([*row, digits(median(new["batch_100"])) + " µs"])
    return or_absent(rows, ["Durable", "New key, by hand", "`consume`", "Ratio", "Duplicate, by hand", "`consume`",
                            "Ratio", "New key, in batches of 100"])


def batches(run):
    rows = []
    for section in ("transactions", "slow-disk"):
        for m in run.find(section):
            new = m["result"]["new"]
            rows.append([
                name_of(m) + (", fsync + 2 ms" if section == "slow-disk" else ""),
                *(digits(1e6 / median(new[v])) for v in ("consume", "batch_100")),
                Ratios(new["consume"], new["batch_10"]) if "batch_10" in new else "–",
                Ratios(new["consume"], new["batch_100"]),
                Ratios(new["batch_100"], new["by_hand_batch_100"]),
                Ratios(new["consume"], new["batch_100_at_once"]),
                Ratios(new["batch_100_at_once"], new["by_hand_batch_100_at_once"]),
            ])
    return or_absent(rows, ["", "One at a time, a second", "Batches of 100, a second", "Throughput of 10",
                            "Throughput of 100", "Time of 100 / best by hand", "Throughput of 100, one handler",
                            "Time of it / best by hand"])


def round_trip(run):
    rows = []
    for m in run.find("round-trip"):
        result = m["result"]
        added = result["ping"]["through_proxy"] - result["ping"]["direct"]
        new, again = result["new"], result["duplicate"]
        rows.append([
            DATABASES[m["database"]],
            f"{added / 1000:.2f} ms",
            *(f"{median(new[v]) / 1000:.2f} ms" for v in ("by_hand", "consume")),
            Ratios(new["consume"], new["by_hand"]),
            Ratios(again["consume"], again["by_hand"]),
            Ratios(new["consume"], new["batch_100_at_once"]),
        ])
    return or_absent(rows, ["", "Ping takes more", "By hand with dedup", "`consume`", "Ratio", "Ratio of duplicates",
                            "Throughput of 100, one handler"])


def instructions(run):
    rows = []
    for m in run.find("instructions"):
        counts = m["result"]["instructions"]
        rows.append([
            DATABASES[m["database"]],
            *(f"{counts[v]:,}" for v in ("by_hand", "consume", "consume_session", "consume_native")),
            digits(counts["consume_native"] / counts["consume_session"]),
        ])
    return or_absent(rows, ["", "By hand", "`consume`, pool", "The caller's session", "The caller's native connection",
                            "Native / session"])


def threads(run):
    found = run.find("threads")
    if not found:
        return ABSENT
    header = ["Threads"]
    for m in found:
        header += [f"{DATABASES[m['database']]} by hand", "`consume`"]
    rates = [m["result"]["messages_per_second"] for m in found]
    counts = list(rates[0]["consume"])
    rows = [[n, *(digits(median(r[v][n])) for r in rates for v in ("by_hand", "consume"))] for n in counts]
    return table(header, rows)


def sizes(run):
    found = run.find("sizes")
    if not found:
        return ABSENT
    header = ["", "Rows"]
    for m in found:
        header += [DATABASES[m["database"]], "to the smallest"]
    counts = sorted({int(n) for m in found for n in m["result"]["microseconds"]})
    rows = []
    for what, name in SIZED.items():
        if not any(what in m["result"] for m in found):
            continue
        for n in map(str, counts):
            row = [name, f"{int(n):,}"]
            for m in found:
                times = m["result"].get(what, {})
                if n in times:
                    row += [digits(median(times[n])) + " µs", Ratios(times[n], times[str(counts[0])])]
                else:
                    row += ["–", "–"]
            rows.append(row)
    return table(header, rows, left=2)


def sizes_memory(run):
    """What a table takes on the disk, and how much of it the server can keep in memory."""
    rows = []
    for m in run.find("sizes"):
        result = m["result"]
        if len(result["microseconds"]) < 2:
            continue
        counts = sorted(result["disk_bytes"], key=int)
        largest = counts[-1]
        disk, cache = result["disk_bytes"][largest], result["cache_bytes"]
        tenfolds = log10(int(largest) / int(counts[0]))
        rows.append([
            DATABASES[m["database"]],
            f"{int(largest):,}",
            f"{disk / 2**30:.2f} GiB",
            digits(disk / int(largest)),
            f"{cache / 2**30:.2f} GiB",
            f"{result['peak_resident_kib'] / 1024:.1f} MiB",
            *(f"{100 * (Ratios(result[w][largest], result[w][counts[0]]).median ** (1 / tenfolds) - 1):+.1f} %"
              for w in SIZED),
        ])
    return or_absent(rows, ["", "Rows", "On the disk", "Bytes a row", "Cache of the database", "The consuming process",
                            *(f"{name}, for ten times the rows" for name in SIZED.values())])


PURGES = {
    "alone": "no purge",
    "purge": "a purge with its defaults",
    "purge_without_rest": "a purge that does not rest",
}


def purge(run):
    rows = []
    for m in run.find("purge"):
        result = m["result"]
        times, removed = result["microseconds"], result["removed_per_second"]
        for way, name in PURGES.items():
            percentiles = result["percentiles"][way]
            rows.append([
                DATABASES[m["database"]],
                name,
                digits(median(times[way])) + " µs",
                Ratios(times[way], times["alone"]),
                *(digits(percentiles[k]) + " µs" for k in ("50", "99", "99.9", "100")),
                digits(median(removed[way])) if way in removed else "–",
            ])
    return or_absent(rows, ["", "Meanwhile", "Mean", "Ratio", "Median", "99 %", "99.9 %", "Longest",
                            "Rows removed a second"], left=2)


def page_views(run):
    """A line for each address, with the times of each database beside each other."""
    found = run.find("page")
    rows = []
    for address in found[0]["result"]["views_ms"] if found else []:
        times = [m["result"]["views_ms"][address] for m in found]
        rows.append([f"`{address}`", *(f"{digits(median(each))} ({digits(max(each))}) ms" for each in times)])
    return or_absent(rows, ["Address", *(DATABASES[m["database"]] for m in found)])


def page_rates(run):
    rows = []
    for m in run.find("page"):
        rates = m["result"]["messages_per_second"]
        rows.append([
            DATABASES[m["database"]],
            *(digits(median(rates[way])) for way in ("alone", "with_pages")),
            Ratios(rates["with_pages"], rates["alone"]),
        ])
    return or_absent(rows, ["", "Messages a second, alone", "With two open pages", "Ratio"])


def http(run):
    rows = []
    for m in run.find("http"):
        rates, in_flight = m["result"]["requests_per_second"], m["result"]["in_flight"]
        rows.append([
            DATABASES[m["database"]],
            *(digits(median(rates[v])) for v in ("plain", "guarded")),
            Ratios(rates["guarded"], rates["plain"]),
            f"{digits(median(in_flight['duplicate_ms']))} ms",
            f"{digits(max(in_flight['duplicate_ms']))} ms",
            f"{digits(max(in_flight['other_ms']))} ms",
        ])
    return or_absent(rows, ["", "Without a guard, a second", "With it", "Ratio", "A copy in flight", "at most",
                            "Another request, at most"])


def http_one_connection(run):
    rows = []
    for m in run.find("http"):
        result = m["result"]
        rows.append([
            DATABASES[m["database"]],
            f"{digits(median(result['request_ms']))} ms",
            digits(median(result["webhook_per_second"])),
        ])
    return or_absent(rows, ["", "A request with the guard", "Messages to a webhook, a second"])


def redis(run):
    rows = []
    for m in run.find("redis"):
        times = m["result"]["microseconds"]
        rows.append([
            name_of(m),
            *(digits(median(times[v])) + " µs" for v in ("by_hand", "lease_consumer")),
            Ratios(times["lease_consumer"], times["by_hand"]),
        ])
    return or_absent(rows, ["", "Two EVALSHA by hand", "`LeaseConsumer`", "Ratio"])


def outbox_add(run):
    rows = []
    for m in run.find("outbox"):
        times = m["result"]["microseconds"]
        rows.append([
            DATABASES[m["database"]],
            *(digits(median(times[v])) + " µs" for v in ("no_message", "by_hand", "add")),
            Ratios(times["add"], times["by_hand"]),
        ])
    return or_absent(rows, ["", "No message", "INSERT by hand", "`Outbox::add`", "`add` / by hand"])


def outbox_drain(run):
    rows = []
    for m in run.find("outbox"):
        drain = m["result"]["drain"]
        rates = drain["messages_per_second"]
        rows.append([
            DATABASES[m["database"]],
            f"{drain['messages']:,}",
            f"{digits(drain['seconds'])} s",
            digits(drain["messages"] / drain["seconds"]),
            *(digits(f(rates)) for f in (max, min)),
        ])
    return or_absent(rows, ["", "Messages", "Time", "Messages a second", "The fastest tenth", "The slowest tenth"])


def outbox_failing(run):
    rows = []
    for m in run.find("outbox"):
        failing = m["result"]["failing"]
        rates = failing["messages_per_second"]
        rows.append([
            DATABASES[m["database"]],
            f"{failing['healthy']:,}",
            f"{failing['failing']:,}",
            *(digits(median(rates[v])) for v in ("without", "with")),
            Ratios(rates["with"], rates["without"]),
        ])
    return or_absent(rows, ["", "Messages", "Failing keys", "A second, without them", "With them", "Ratio"])


def outbox_snapshot(run):
    rows = []
    for m in run.find("outbox"):
        for snapshot in m["result"].get("snapshots", []):
            times, first = snapshot["milliseconds"], snapshot["first_ms"]
            rows.append([
                DATABASES[m["database"]],
                f"{snapshot['deleted']:,}",
                f"{snapshot['keys']:,}",
                *(f"{digits(median(times[v]))} ms" for v in ("fresh", "held")),
                digits(median(times["held"]) / median(times["fresh"])),
                *(f"{digits(first[v])} ms" for v in ("fresh", "held")),
            ])
    return or_absent(rows, ["", "Rows removed", "Keys", "Batch, fresh table", "Behind removed rows", "Ratio",
                            "First read, fresh table", "Past removed rows"])


def outbox_delay(run):
    rows = []
    for m in run.find("outbox"):
        delays = m["result"]["delay_ms"]
        row = [DATABASES[m["database"]]]
        for way in ("wake", "poll"):
            row += [f"{digits(median(delays[way]))} ms", f"{digits(max(delays[way]))} ms"]
        rows.append(row)
    return or_absent(rows, ["", "With `wake`, median", "Longest", "Without, median", "Longest"])


# The ways to consume from a broker. A section has some of them.
BROKER_WAYS = {
    "client_alone": "the client library alone, which only counts",
    "source_alone": "the source of txinbox alone, which only counts",
    "empty_handler": "`run` in batches of 100, a handler that does nothing",
    "by_hand": "by hand: poll one, transaction, acknowledge",
    "by_hand_async": "the same, without a wait for the broker",
    "run": "`run` in batches of 100",
    "run_4_workers": "`run` in batches of 100, 4 workers",
}


def broker(run, section, base, base_name):
    """A table of the ways. The ratios are to the way `base`."""
    found = run.find(section)
    if not found:
        return ABSENT
    measured = found[0]["result"]["messages_per_second"]
    rows = []
    for way in (w for w in BROKER_WAYS if w in measured):
        row = [BROKER_WAYS[way]]
        for m in found:
            rates = m["result"]["messages_per_second"]
            row += [digits(median(rates[way])), Ratios(rates[way], rates[base])]
        rows.append(row)
    header = [""]
    for m in found:
        header += [DATABASES[m["database"]], f"to {base_name}"]
    return table(header, rows)


def loop_cost(run):
    rows = []
    for m in run.find("loop"):
        times = m["result"]["microseconds"]
        rows.append([
            DATABASES[m["database"]],
            *(f"{digits(median(times[v]))} µs" for v in ("consume_batch", "run")),
            f"{loop_microseconds(m):.2f} µs",
        ])
    return or_absent(rows, ["", "`consume_batch`", "`run`", "The loop's own cost"])


def growth(run, curve, what):
    """A line for each size, with the time of one message on each database, and its ratio to the first size."""
    found = run.find("growth")
    if not found:
        return ABSENT
    header = [what]
    for m in found:
        header += [DATABASES[m["database"]], "to the first"]
    rows = []
    for size in found[0]["result"][curve]:
        row = [f"{int(size):,}"]
        for m in found:
            times = m["result"][curve]
            first = median(next(iter(times.values())))
            row += [digits(median(times[size])) + " µs", digits(median(times[size]) / first)]
        rows.append(row)
    return table(header, rows)


def loop_microseconds(measurement):
    """What the loop costs for a message: the median of the differences in each round."""
    times = measurement["result"]["microseconds"]
    return median(a - b for a, b in zip(times["run"], times["consume_batch"], strict=True))


def stuck_lanes(measurement):
    """For each number of stuck lanes: healthy lanes, stuck lanes, and the rates without and with the stuck ones."""
    for healthy, rates in measurement["result"]["healthy_per_second"].items():
        for stuck, measured in rates.items():
            if stuck != "0" or len(rates) == 1:
                yield healthy, stuck, rates["0"], measured


def loop_lanes(run):
    rows = []
    for m in run.find("loop"):
        for healthy, stuck, without, with_stuck in stuck_lanes(m):
            rows.append([
                DATABASES[m["database"]],
                healthy,
                stuck,
                *(digits(median(rates)) for rates in (without, with_stuck)),
                Ratios(with_stuck, without) if stuck != "0" else "–",
            ])
    return or_absent(rows, ["", "Healthy lanes", "Stuck lanes", "A second, without the stuck ones", "With them",
                            "Ratio"])


def redeliveries(run):
    rows = []
    for m in run.find("redeliveries"):
        times = m["result"]["microseconds"]
        rows.append([
            DATABASES[m["database"]],
            *(digits(1e6 / median(times[v])) for v in ("without_memory", "with_memory")),
            Ratios(times["without_memory"], times["with_memory"]),
            digits(1e6 / median(times["from_memory"])),
        ])
    return or_absent(rows, ["", "The storm without, a second", "With the memory", "Times as fast",
                            "Only duplicates from memory, a second"])


def command(run):
    rows = []
    for m in run.find("command"):
        result = m["result"]
        for variant, name in (("command", "`txinbox consume`"), ("by_hand", "C by hand")):
            seconds = result["seconds"][variant]
            rows.append([
                DATABASES[m["database"]],
                name,
                digits(median(seconds)) + " s",
                digits(median(result["cpu_seconds"][variant])) + " s",
                digits(result["lines"] / median(seconds)),
                Ratios(seconds, result["seconds"]["by_hand"]),
            ])
    return or_absent(rows, ["", "", "Time", "of it CPU", "Lines a second", "Ratio"], left=2)


def memory(run):
    rows = []
    for m in run.find("memory"):
        result = m["result"]
        growth = result["growth_kib"]
        rows.append([DATABASES[m["database"]], f"{result['messages']:,}", f"{result['resident_kib'] / 1024:.1f} MiB",
                     f"{growth[len(growth) // 2 - 1]:,.0f} KiB", f"{growth[-1]:,.0f} KiB", f"{max(growth):,.0f} KiB"])
    return or_absent(rows, ["", "Messages", "After the warm-up", "Growth at half", "At the end", "At most"])
