#!/usr/bin/env python3
"""Follows 1,000 orders through the chain of the examples: a producer, Kafka, the order service, its outbox and relay,
and the stock service. A collector gets the spans of all three programs. Each order must be one trace. A run of the
handler that follows a failed one must be a trace of its own, with a link to the producer's span.

Usage: chain.py BUILD_FOLDER RUN
  RUN  runs a program with the libraries of OpenTelemetry (tests/get_newer.sh opentelemetry)
"""

import collections
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

from collector import Collector

ORDERS = 1000
RESENT = 20
LATE = ORDERS + 1  # the order whose handler fails at first
ITEMS = ["tea", "rice", "salt", "milk", "oil", "soap", "figs"]

build = pathlib.Path(sys.argv[1]).resolve()
run = sys.argv[2]
brokers = f"127.0.0.1:{os.environ['TXINBOX_BROKER_PORT']}"
folder = pathlib.Path(tempfile.mkdtemp(prefix="txinbox-tracing."))
collector = Collector()
environment = dict(
    os.environ,
    OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint,
    OTEL_EXPORTER_OTLP_PROTOCOL="http/json",
)
services = []


def fail(text):
    sys.exit(f"tests/tracing/chain.py: {text}")


def make_database(name, *statements):
    path = folder / name
    subprocess.run([build / "tools/cli/txinbox", "migrate", "--db", f"sqlite:{path}"], check=True, stdout=subprocess.DEVNULL)
    with sqlite3.connect(path, timeout=30) as connection:
        for statement in statements:
            connection.execute(statement)
        for item in ITEMS + ["late"]:
            connection.execute("insert into t_item values (?, 0)" if name == "orders.db" else
                               "insert into t_stock values (?, 1000000, 0, 0)", (item,))
    return path


def make_topic(name):
    ask = ["kcat", "-b", brokers, "-L", "-t", name, "-X", "allow.auto.create.topics=true"]
    end = time.monotonic() + 30
    while f'topic "{name}" with 4' not in subprocess.run(ask, capture_output=True, text=True, check=False).stdout:
        if time.monotonic() > end:
            fail(f"Kafka has not made the topic {name}")
        time.sleep(0.2)


def number(path, query):
    with sqlite3.connect(path, timeout=30) as connection:
        return connection.execute(query).fetchone()[0]


def start(*command):
    services.append(subprocess.Popen([run, *map(str, command)], env=environment))


def send(first, last, *items):
    subprocess.run([run, build / "tests/txinbox_traced_orders", brokers, "orders", str(first),
                    str(last), *items], env=environment, check=True, timeout=300)


def wait_for(what, condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        if any(service.poll() is not None for service in services):
            fail(f"a service has ended while the test waited for {what}")
        if time.monotonic() > end:
            fail(f"{what}: not within {seconds} s")
        time.sleep(0.2)


def failed():
    return [span for span in collector.spans() if (span.service, span.name) == ("order-service", "process orders") and span.error]


def check(holds, text, *about):
    if not holds:
        fail(" ".join([text, *map(str, about)]))


def named(spans, service, name):
    return [span for span in spans if (span.service, span.name) == (service, name)]


def place(span):
    return span.trace, span.id


def is_duplicate(span):
    return span.attributes.get("txinbox.outcome") == "already_consumed"


def is_effective(create, by_parent):
    """Whether the message of the outbox was published, and the stock service has consumed it. A run that was rolled
    back leaves a span of a message that does not exist."""
    sends = named(by_parent[place(create)], "order-service", "send stock")
    if not sends:
        return False
    check(sum(not span.error for span in sends) == 1, "not published once:", create, *sends)
    for span in sends:
        check(span.attributes["messaging.message.id"] == create.attributes["messaging.message.id"], "another id:", span)
        check(place(create) in span.links, "no link to the message:", span)
    processes = named(by_parent[place(create)], "stock-service", "process stock")
    check(any(not span.error and not is_duplicate(span) for span in processes), "no call of the stock service:", create)
    return True


def check_spans(spans):
    known = {place(span) for span in spans}
    check(len(known) == len(spans), "a span came twice")
    by_parent, by_link, by_trace = (collections.defaultdict(list) for _ in range(3))
    for span in spans:
        by_parent[span.trace, span.parent].append(span)
        by_trace[span.trace].append(span)
        for link in span.links:
            by_link[link].append(span)
            check(link in known, "the span of a link is missing:", span)
        check(not span.parent or (span.trace, span.parent) in known, "the parent is missing:", span)
        check(span.parent or span.links or span.service == "shop", "neither parent nor link:", span)
        for secret in ('"order1', '"order2', "the price is missing"):  # the begin of a business key, and an error text
            check(secret not in span.whole, secret, "is in", span)

    parents = {place(span): (span.trace, span.parent) for span in spans if span.parent}
    sent = named(spans, "shop", "send orders")
    check(len(sent) == ORDERS + RESENT + 1, f"{len(sent)} spans of the producer")
    effective = retried = 0
    for span in sent:
        # A later delivery has a trace of its own, with a link to the producer's span.
        retries = [each for each in by_link[place(span)] if each.trace != span.trace and each.name == "process orders"]
        for retry in retries:
            check(not retry.parent or retry.service == "order-service", "a retry of another service:", retry)
        family = [each for trace in {span.trace, *(retry.trace for retry in retries)} for each in by_trace[trace]]
        creates = [each for each in named(family, "order-service", "create stock")
                   if descends(each, {place(span), *map(place, retries)}, parents)]
        count = sum(is_effective(create, by_parent) for create in creates)
        check(count <= 1, "an order has taken effect several times:", span)
        effective += count
        if retries and count:
            check(any(each.error for each in by_trace[span.trace] if each.name == "process orders"), "no failure:", span)
            retried += 1
    duplicates = sum(map(is_duplicate, named(spans, "order-service", "process orders")))
    duplicates += sum(span.events.count("txinbox.already_consumed")
                      for span in named(spans, "order-service", "consume_batch orders"))
    check(effective == ORDERS + 1, f"{effective} orders have gone through the chain")
    check(retried >= 1, "no order has been tried again")
    check(duplicates == RESENT, f"{duplicates} duplicates")


def descends(create, roots, parents):
    """Whether the message was created for one of these spans. A batch's trace can have the retries of several orders."""
    at = place(create)
    while at not in roots and at in parents:
        at = parents[at]
    return at in roots


def main():
    orders = make_database("orders.db", "create table t_item(sku text primary key, version integer)",
                           "create table t_order(no text primary key, sku text, qty integer)",
                           "create trigger late before insert on t_order when new.sku = 'late' "
                           "begin select raise(abort, 'the price is missing'); end")
    stock = make_database("stock.db", "create table t_stock(sku text primary key, left_over integer, version integer, gaps integer)")
    for topic in ("orders", "stock", "dead"):
        make_topic(topic)
    start(build / "examples/chain/chain_orders", f"sqlite:{orders}", f"kafka://{brokers}/orders?group=orders&dead_letters=dead", "stock")
    start(build / "examples/chain/chain_stock", f"sqlite:{stock}", f"kafka://{brokers}/stock?group=stock&dead_letters=dead")
    send(1, ORDERS, *ITEMS)
    send(1, RESENT, *ITEMS)
    send(LATE, LATE, "late")
    wait_for("a handler that fails", failed)
    with sqlite3.connect(orders, timeout=30) as connection:
        connection.execute("drop trigger late")
    wait_for("all orders at the stock service",
             lambda: number(stock, "select sum(1000000 - left_over) from t_stock") == ORDERS + 1)
    check(number(stock, "select sum(gaps) from t_stock") == 0, "the messages of an item have another order")
    for service in services:
        service.send_signal(signal.SIGTERM)
    for service in services:
        check(service.wait(timeout=60) == 0, "a service ended with", service.returncode)
    spans = collector.spans()
    check_spans(spans)
    print(f"count: {ORDERS + 1} orders followed")
    print(f"count: {RESENT} duplicates")
    print(f"count: {len(spans)} spans, each with its parent or its link")


try:
    main()
finally:
    for each in services:
        each.kill()
    collector.close()
    subprocess.run(["rm", "-rf", folder], check=True)
