"""A collector for spans: an HTTP server that takes OTLP in JSON, and keeps the spans in memory."""

import collections
import gzip
import http.server
import json
import threading

Span = collections.namedtuple("Span", "service name kind trace id parent links events attributes error whole")

KINDS = {1: "INTERNAL", 2: "SERVER", 3: "CLIENT", 4: "PRODUCER", 5: "CONSUMER"}


def value_of(value):
    """The value of an attribute; a list becomes a text."""
    for kind, read in (("stringValue", str), ("intValue", int), ("doubleValue", float), ("boolValue", bool)):
        if kind in value:
            return read(value[kind])
    return json.dumps(value)


def attributes_of(attributes):
    return {each["key"]: value_of(each["value"]) for each in attributes}


def spans_of(export):
    for resource in export["resourceSpans"]:
        service = attributes_of(resource["resource"]["attributes"])["service.name"]
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                if int(span["endTimeUnixNano"]) < int(span["startTimeUnixNano"]):
                    raise ValueError(f"{span['name']} ends before it begins")
                yield Span(
                    service,
                    span["name"],
                    KINDS[span["kind"]],
                    span["traceId"],
                    span["spanId"],
                    span.get("parentSpanId", ""),
                    [(link["traceId"], link["spanId"]) for link in span.get("links", [])],
                    [event["name"] for event in span.get("events", [])],
                    attributes_of(span.get("attributes", [])),
                    span.get("status", {}).get("code", 0) == 2,
                    json.dumps(span),
                )


class Collector:
    """Listens on a free port of the loopback, until `close`."""

    def __init__(self):
        self._lock = threading.Lock()
        self._spans = []
        self._failure = None
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # noqa: N802, the name is that of the base class
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                collector.take(self.path, body)
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def take(self, path, body):
        try:
            if path != "/v1/traces":
                raise ValueError(f"a request for {path}")
            spans = list(spans_of(json.loads(body)))
        except Exception as failure:  # the exporter would only send it again
            self._failure = failure
            return
        with self._lock:
            self._spans += spans

    def spans(self):
        if self._failure is not None:
            raise self._failure
        with self._lock:
            return list(self._spans)

    def close(self):
        self._server.shutdown()
        self._server.server_close()
