// The HTTP publisher of the outbox, with a real server and a real client.

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <httplib.h>
#include <soci/soci.h>
#include <txinbox/http/httplib.hpp>
#include <txinbox/http/httplib_sender.hpp>
#include <txinbox/txinbox.hpp>

#include "service.hpp"
#include "support/command.hpp"
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/eventually.hpp"
#include "support/thrown.hpp"
#include "webhook_kit.hpp"
#include "webhook_request.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("HTTP: a message arrives with id, topic, key, type and headers, and two copies take effect once") {
  EffectDatabase receiver;
  Pool its_pool = receiver.pool();
  TxConsumer consumer(its_pool, "POST /events", {.claim_wait = 0ms});
  http::Guard guard(consumer, [](const http::Request&) { return std::string("orders"); });
  std::map<std::string, std::string> seen;
  std::atomic<int> replays = 0;
  const auto handle = http::httplib_route(guard, [&](soci::session& sql, const http::Request& request) {
    for (const char* name :
         {"Txinbox-Topic", "Txinbox-Key", "Txinbox-Type", "Content-Type", "traceparent", "Authorization"}) {
      seen[name] = http::find_header(request.headers, name).value_or("none");
    }
    seen["body"] = request.body;
    sql << "insert into effect values ('one')";
    return http::Response{.status = 204};
  });
  const WebhookServer server([&](const httplib::Request& from, httplib::Response& to) {
    handle(from, to);
    if (to.has_header("Idempotent-Replayed")) ++replays;
  });

  const TestDatabase sender;
  const std::string id = Outbox::add(*sender.session(), {.topic = "stöck",
                                                         .key = "100%\nkey",
                                                         .type = "OrderBooked",
                                                         .payload = "{\"no\":1}",
                                                         .headers = {{"traceparent", "00-1"}}});
  const Publisher publish = publisher_for({.url = server.url(), .authorization = "Bearer 8e03"});
  Pool pool = sender.pool();
  // A relay that crashes after the answer publishes again.
  Publisher twice = [&](std::span<const OutgoingMessage> messages) {
    CHECK(publish(messages).front().status == PublishStatus::confirmed);
    return publish(messages);
  };
  {
    const OutboxRelay relay(pool, twice, {.poll = 10ms});
    CHECK(outbox_becomes_empty(sender));
  }
  CHECK(receiver.effects() == 1);
  CHECK(replays == 1);
  CHECK(receiver.claim_of("orders/" + id) == "consumed");
  // cpp-httplib's server decodes the fields.
  CHECK(seen == std::map<std::string, std::string>{{"Txinbox-Topic", "stöck"},
                                                   {"Txinbox-Key", "100%\nkey"},
                                                   {"Txinbox-Type", "OrderBooked"},
                                                   {"Content-Type", "application/json"},
                                                   {"traceparent", "00-1"},
                                                   {"Authorization", "Bearer 8e03"},
                                                   {"body", "{\"no\":1}"}});
}

TEST_CASE("HTTP: the status decides how a message ends, and whether the other messages of the call are sent") {
  int status = 0;
  const WebhookServer server([&](const httplib::Request& from, httplib::Response& to) {
    to.status = from.body == "1" ? status : 200;
    if (from.body == "1") to.set_header("Retry-After", "700");
  });
  struct Case {
    int status;
    PublishStatus second;
    PublishStatus third;
  };
  using enum PublishStatus;
  for (const Case& each :
       {Case{200, confirmed, confirmed}, Case{202, confirmed, confirmed}, Case{204, confirmed, confirmed},
        Case{302, failed, confirmed},    Case{400, rejected, confirmed},  Case{401, failed, confirmed},
        Case{403, failed, confirmed},    Case{404, failed, confirmed},    Case{408, failed, confirmed},
        Case{409, failed, confirmed},    Case{410, failed, confirmed},    Case{413, rejected, confirmed},
        Case{414, rejected, confirmed},  Case{415, rejected, confirmed},  Case{422, rejected, confirmed},
        Case{429, failed, postponed},    Case{431, rejected, confirmed},  Case{500, failed, confirmed},
        Case{502, failed, postponed},    Case{503, failed, postponed},    Case{504, failed, postponed}}) {
    CAPTURE(each.status);
    status = each.status;
    const Publisher publish = publisher_for({.url = server.url()});
    const auto results = publish(numbered(3));
    REQUIRE(results.size() == 3);
    CHECK(results[0].status == confirmed);
    CHECK(results[1].status == each.second);
    CHECK(results[2].status == each.third);
    const std::string said =
        server.url().substr(0, server.url().rfind('/')) + ": HTTP status " + std::to_string(status);
    CHECK(results[1].error.substr(0, said.size()) == (each.second == confirmed ? "" : said));
    CHECK(results[1].error.ends_with("TXINBOX_HTTP_AUTHORIZATION for the command") == (status == 401 || status == 403));
    CHECK(results[1].retry_after == (each.second == failed ? 700s : 0s));
    // The statuses 429 and 503 are about the whole service.
    const bool is_for_all = status == 429 || status == 503;
    const auto next = publish(numbered(1));
    CHECK(next[0].status == (is_for_all ? postponed : confirmed));
    CHECK((next[0].retry_after > 0s) == is_for_all);
    CHECK(next[0].retry_after <= 700s);
  }
}

TEST_CASE("HTTP: a message that HTTP cannot carry is rejected and not sent") {
  std::atomic<int> requests = 0;
  const WebhookServer server([&](const httplib::Request&, httplib::Response&) { ++requests; });
  const Publisher publish = publisher_for({.url = server.url()});
  for (const auto& header : std::map<std::string, std::string>{{"a", "b\r\nHost: other"},
                                                               {"a b", "c"},
                                                               {"", "c"},
                                                               {"a:b", "c"},
                                                               {"Host", "other"},
                                                               {"transfer-encoding", "chunked"},
                                                               {"Content-Length", "1"},
                                                               {"idempotency-key", "other"},
                                                               {"Idempotency_Key", "other"},
                                                               {"TXINBOX_TYPE", "other"},
                                                               {"A-TRACE", "another value of a-trace"},
                                                               {"a_trace", "another value of a-trace"}}) {
    const auto& name = header.first;
    CAPTURE(name);
    std::vector<OutgoingMessage> messages = numbered(1);
    messages[0].headers["a-trace"] = "1";
    messages[0].headers[name] = header.second;
    CHECK(publish(messages)[0].status == PublishStatus::rejected);
  }
  CHECK(requests == 0);
  std::vector<OutgoingMessage> messages = numbered(1);
  messages[0].headers["content-type"] = "text/plain";
  messages[0].payload.clear();
  CHECK(publish(messages)[0].status == PublishStatus::confirmed);
  CHECK(requests == 1);
}

TEST_CASE("HTTP: after a busy service has recovered, a relay delivers all messages in the order of each key") {
  std::mutex mutex;
  std::map<std::string, std::vector<std::string>> got;
  int count = 0;
  const WebhookServer server([&](const httplib::Request& from, httplib::Response& to) {
    const std::lock_guard lock(mutex);
    ++count;
    if (count % 10 == 3) {
      to.status = 503;
    } else if (count % 10 == 6) {
      to.status = 500;
    } else {
      got[from.get_header_value("Txinbox-Key")].push_back(from.body);
    }
  });
  const TestDatabase db;
  std::map<std::string, std::vector<std::string>> expected;
  for (int i = 0; i < 60; ++i) {
    const std::string key = "k" + std::to_string(i % 5);
    expected[key].push_back(std::to_string(i));
    Outbox::add(*db.session(), {.topic = "t", .key = key, .payload = std::to_string(i)});
  }
  Pool pool = db.pool();
  const OutboxRelay relay(pool, publisher_for({.url = server.url()}),
                          {.poll = 5ms, .initial_backoff = 5ms, .max_backoff = 20ms});
  CHECK(outbox_becomes_empty(db));
  const std::lock_guard lock(mutex);
  CHECK(got == expected);
}

TEST_CASE("HTTP: Retry-After is a number of seconds or a date, and is at most an hour") {
  const auto now = std::chrono::sys_days(std::chrono::year(1994) / 11 / 6) + 8h + 49min + 30s;
  const auto of = [&](const std::string& value) {
    return http::retry_after({.status = 503, .headers = {{"retry-after", value}}}, now);
  };
  CHECK(of("0") == 0s);
  CHECK(of("120") == 120s);
  for (const char* long_wait : {"999999999", "2147483647", "2147483648", "99999999999", "99999999999999999999",
                                "Fri, 31 Dec 9999 23:59:59 GMT", "Fri, 31 Dec 2400 23:59:59 GMT"}) {
    CAPTURE(long_wait);
    CHECK(of(long_wait) == 1h);
  }
  CHECK(of("Sun, 06 Nov 1994 09:49:30 GMT") == 1h);
  CHECK(of("Sun, 06 Nov 1994 09:49:29 GMT") == 1h - 1s);
  CHECK(of("Sun, 06 Nov 1994 08:49:37 GMT") == 7s);
  CHECK(of("Sun, 06 Nov 1994 08:49:00 GMT") == 0s);
  CHECK(of("Sun, 06 Nov 2094 08:49:00 GMT") == 1h);
  for (const char* wrong : {"", "-1", "1.5", "soon", "Mon, 01 Jan 0001 00:00:00 GMT", "Sun, 36 Nov 1994 08:49:37 GMT",
                            "Sun, 06 Nox 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 CET"}) {
    CAPTURE(wrong);
    CHECK(of(wrong) == 0s);
  }
  CHECK(http::retry_after({.status = 503}, now) == 0s);
}

TEST_CASE("the URL of an HTTP publisher has a host and no user, and error texts do not contain it") {
  ::setenv("TXINBOX_HTTP_AUTHORIZATION", "Bearer hunter2", 1);
  CHECK(http_publisher_options_from_url("https://h.example/events?a=b").authorization == "Bearer hunter2");
  ::unsetenv("TXINBOX_HTTP_AUTHORIZATION");
  CHECK(http_publisher_options_from_url("http://[::1]:80").authorization.empty());
  for (const std::string url : {"", "http://", "http:///x", "http://:80", "ftp://h", "http://u:hunter2@h/",
                                "http://u@h", "http://h/a b", "http://h/#x", "http://h/\r\nx", "http://h/\xc3\xbc"}) {
    CAPTURE(url);
    CHECK(thrown_by([&] { (void)http_publisher_options_from_url(url); }) == "invalid_argument");
  }
  const auto refused = [](auto change) {
    HttpPublisherOptions options{.url = "http://h"};
    change(options);
    return thrown_by([&] { (void)http_publisher(options, [](const auto&, auto) { return http::Response{}; }); }) ==
           "invalid_argument";
  };
  CHECK_FALSE(refused([](auto&) {}));
  CHECK(refused([](auto& o) { o.url = "h"; }));
  CHECK(refused([](auto& o) { o.timeout = 0s; }));
  CHECK(refused([](auto& o) { o.authorization = "a\r\nb"; }));
  CHECK(thrown_by([] { (void)http_publisher({.url = "http://h"}, {}); }) == "invalid_argument");
}

TEST_CASE("HTTP: the command relays the outbox to a webhook" * doctest::skip(!has_variable("TXINBOX_COMMAND"))) {
  std::atomic<int> requests = 0;
  const WebhookServer server([&](const httplib::Request& from, httplib::Response& to) {
    ++requests;
    if (from.body == "13") to.status = 422;
  });
  const TestDatabase db;
  for (int i = 0; i < 50; ++i) {
    Outbox::add(*db.session(), {.topic = "t", .key = std::to_string(i % 7), .payload = std::to_string(i)});
  }
  const Ended ended = run(Command::Arguments{"relay", "--to", server.url(), "--until-empty"}, db.url());
  CAPTURE(ended.err);
  CHECK(ended.status == 1);
  CHECK(ended.last_line() == "published 49, failed attempts 0, parked 1");
  CHECK(requests == 50);
}

TEST_CASE("HTTP: the example sends its message to a webhook" * doctest::skip(!has_variable("TXINBOX_WEBHOOK_RELAY"))) {
  std::mutex mutex;
  std::string body;
  const WebhookServer server([&](const httplib::Request& from, httplib::Response&) {
    const std::lock_guard lock(mutex);
    body = from.body;
  });
  const std::string command = "cd \"$(mktemp -d)\" && '" + variable("TXINBOX_WEBHOOK_RELAY") + "' " + server.url();
  CHECK(std::system(command.c_str()) == 0);  // NOLINT(cert-env33-c)
  const std::lock_guard lock(mutex);
  CHECK(body == "{\"no\":\"order1\"}");
}

}  // namespace
}  // namespace txinbox::test
