// The changes that the buttons of the operators' page make.

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <txinbox/operations.hpp>

#include "page_kit.hpp"
#include "support/eventually.hpp"

namespace txinbox::test {
namespace {

using http::Response;
using nlohmann::json;

std::vector<AuditRecord> audit(PageKit& t) { return list_audit(t.pool.acquire()); }

TEST_CASE("each button of a failed message changes this message alone, and the audit says who and why") {
  PageKit t;
  t.fail("svc", {"a", "b", "c", "d"}, true);
  json retry = t.body_of_button("/failed", "failed/retry", "a");
  retry["reason"] = "ticket 7";
  CHECK(t.change("failed/retry", retry)["changed"] == 1);
  CHECK(t.change("failed/discard", t.body_of_button("/message?consumer=svc&key=b", "failed/discard", "b"))["changed"] ==
        1);
  json redrive = t.body_of_button("/failed", "failed/redrive", "c");
  redrive["to"] = "orders";
  CHECK(t.change("failed/redrive", redrive)["changed"] == 1);

  CHECK(t.db.claim_of("a") == "none");
  CHECK(t.db.claim_of("b") == "discarded");
  CHECK(t.db.claim_of("c") == "none");
  CHECK(t.db.claim_of("d") == "parked");
  CHECK(t.json("/outbox")["rows"][0]["topic"] == "orders");
  const auto records = audit(t);
  REQUIRE(records.size() == 3);
  CHECK(records[2].action == "retry");
  CHECK(records[2].reason == "ticket 7");
  CHECK(records[1].action == "discard");
  CHECK(records[0].action == "redrive_stored");
  for (const AuditRecord& each : records) CHECK(each.actor == "ann");
}

TEST_CASE("a change of a group is made if as many messages are there as the operator has seen") {
  PageKit t;
  t.fail("svc", {"a", "b", "c"}, true);
  t.fail("other", {"a"}, true);
  t.fail("svc", {"failing"}, false);
  const json shown = t.json("/failed")["groups"][0];
  CHECK(shown["messages"] == 3);
  const json body{{"consumer", "svc"},
                  {"error_class", "std::runtime_error"},
                  {"state", "parked"},
                  {"expected", 3},
                  {"failed_until", shown["last_failed_at"]}};
  CHECK(t.change("failed/retry", {{"consumer", "svc"}, {"business_key", "a"}})["changed"] == 1);
  const Response refused = t.post("/api/failed/discard", body.dump());
  CHECK(refused.status == 409);
  CHECK(json::parse(refused.body)["messages"] == 2);

  // A new one does not take the place of the one that is gone.
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  t.fail("svc", {"d"}, true);
  CHECK(t.post("/api/failed/discard", body.dump()).status == 409);
  CHECK(t.db.number("select count(*) from txinbox_consumed_message where state = 'parked'") == 4);

  json as_now = body;
  as_now["expected"] = 2;
  CHECK(t.change("failed/retry", as_now)["changed"] == 2);
  CHECK(t.db.claim_of("d") == "parked");
  for (const char* missing : {"expected", "failed_until"}) {
    json part = body;
    part.erase(missing);
    CHECK(t.post("/api/failed/retry", part.dump()).status == 400);
  }
}

/// The change of all messages of the consumer that have failed until now.
json group_of(PageKit& t, const std::string& consumer, std::size_t expected) {
  json body{{"consumer", consumer}, {"expected", expected}};
  const json shown = t.json("/failed?consumer=" + consumer);
  for (const json& group : shown["groups"]) {
    body["failed_until"] = std::max(body.value("failed_until", ""), group["last_failed_at"].get<std::string>());
  }
  return body;
}

TEST_CASE("a group of the page is changed in parts, and each answer says how many are left") {
  for (const std::string action : {"failed/retry", "failed/discard", "failed/redrive"}) {
    CAPTURE(action);
    PageKit t;
    t.fail("svc", {"a", "b", "c", "d", "e"}, true);
    t.fail("other", {"a"}, true);
    json part = group_of(t, "svc", 5);
    part["at_most"] = 2;
    if (action == "failed/redrive") part["to"] = "orders";
    for (const std::size_t left : {3U, 1U, 0U}) {
      const json done = t.change(action, part);
      CHECK(done["changed"] == part["expected"].get<std::size_t>() - left);
      CHECK(done["left"] == left);
      CHECK(t.db.number("select count(*) from txinbox_consumed_message where state = 'parked'") ==
            static_cast<long long>(left) + 1);
      part["expected"] = done["left"];
    }
    CHECK(audit(t).size() == 5);
  }
}

TEST_CASE("a change of a group of the page without parts leaves none, and at_most must be a number above 0") {
  PageKit t;
  t.fail("svc", {"a", "b", "c"}, true);
  json body = group_of(t, "svc", 3);
  for (const json& at_most : {json(0), json(-1), json(1.5), json("2"), json(true)}) {
    CAPTURE(at_most);
    body["at_most"] = at_most;
    CHECK(t.post("/api/failed/retry", body.dump()).status == 400);
  }
  CHECK(t.db.number("select count(*) from txinbox_consumed_message where state = 'parked'") == 3);
  body.erase("at_most");
  const json done = t.change("failed/retry", body);
  CHECK(done["changed"] == 3);
  CHECK(done["left"] == 0);
}

TEST_CASE("a part of a group of the page changes nothing if somebody else has changed the rest") {
  PageKit t;
  t.fail("svc", {"a", "b", "c", "d", "e"}, true);
  json part = group_of(t, "svc", 5);
  part["at_most"] = 2;
  part["expected"] = t.change("failed/discard", part)["left"];
  const std::string other = t.json("/failed")["rows"][0]["business_key"];
  CHECK(t.change("failed/retry", {{"consumer", "svc"}, {"business_key", other}})["changed"] == 1);
  const Response refused = t.post("/api/failed/discard", part.dump());
  CHECK(refused.status == 409);
  CHECK(json::parse(refused.body)["messages"] == 2);
  CHECK(t.db.number("select count(*) from txinbox_consumed_message where state = 'parked'") == 2);
}

TEST_CASE("messages of the page that cannot be changed do not hide the others from a part, and are left") {
  PageKit t;
  t.fail("svc", {"a", "b"}, true);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  t.fail("svc", {"torn 1", "torn 2"}, true);  // the latest ones: a list begins with them
  t.db.run("update txinbox_consumed_message set state = 'torn' where business_key like 'torn%'");
  json part = group_of(t, "svc", 4);
  part["at_most"] = 1;
  for (const int left : {3, 2}) {
    const json done = t.change("failed/retry", part);
    CHECK(done["changed"] == 1);
    CHECK(done["left"] == left);
    part["expected"] = left;
  }
  const json last = t.change("failed/retry", part);
  CHECK(last["changed"] == 0);
  CHECK(last["left"] == 2);
}

TEST_CASE("messages of the page without a payload stay when a group is published again in parts") {
  PageKit t;
  t.fail("svc", {"a", "b", "c", "d", "e"}, true);
  t.db.run("update txinbox_failed_message set payload = null where business_key in ('b', 'd')");
  json part = group_of(t, "svc", 5);
  part["to"] = "orders";
  part["at_most"] = 2;
  const json first = t.change("failed/redrive", part);
  CHECK(first == json{{"changed", 2}, {"left", 3}, {"without_payload", 2}});
  part["expected"] = first["left"];
  CHECK(t.change("failed/redrive", part) == json{{"changed", 1}, {"left", 2}, {"without_payload", 2}});
  part["expected"] = 2;
  CHECK(t.change("failed/redrive", part) == json{{"changed", 0}, {"left", 2}, {"without_payload", 2}});
  CHECK(t.db.number("select count(*) from txinbox_outbox_message") == 3);
}

TEST_CASE("a consumer is paused and resumed") {
  PageKit t;
  CHECK(TxConsumer(t.pool, "svc").consume({.business_key = "a"}, add_effect).outcome == Outcome::consumed);
  CHECK(t.post("/api/pause", R"({"consumer":"svc"})").status == 400);  // without a reason
  CHECK(t.change("pause", {{"consumer", "svc"}, {"reason", "a wrong version"}, {"for_seconds", 60}})["changed"] == 1);
  CHECK(eventually([&] { return t.json("/")["consumers"][0]["paused"] == true; }));
  CHECK(t.json("/")["pauses"][0]["by"] == "ann");
  CHECK(t.get("/").body.find("a wrong version") != std::string::npos);
  CHECK(t.change("resume", {{"consumer", "svc"}})["changed"] == 1);
  CHECK(t.change("resume", {{"consumer", "svc"}})["changed"] == 0);
  CHECK(list_pauses(t.pool.acquire()).empty());
}

TEST_CASE("parked messages of the outbox are retried and discarded") {
  PageKit t;
  for (int i = 0; i < 2; ++i) Outbox::add(*t.db.session(), {.topic = "t", .key = "k"});
  t.db.run("update txinbox_outbox_message set attempts = 3, parked_at = created_at");
  const auto rows = t.json("/outbox?state=parked")["rows"];
  REQUIRE(rows.size() == 2);
  CHECK(t.change("outbox/retry", {{"id", rows[0]["id"]}})["changed"] == 1);
  CHECK(t.change("outbox/discard", {{"id", rows[1]["id"]}})["changed"] == 1);
  CHECK(eventually([&] { return t.json("/outbox")["status"]["waiting"] == 1; }));
  CHECK(t.db.number("select count(*) from txinbox_outbox_message") == 1);
  CHECK(audit(t).size() == 2);
}

}  // namespace
}  // namespace txinbox::test
