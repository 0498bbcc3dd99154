// The content of the operators' page.

#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <txinbox/error.hpp>

#include "page_kit.hpp"
#include "support/eventually.hpp"
#include "support/test_user.hpp"

namespace txinbox::test {
namespace {

using http::Response;
using nlohmann::json;

const std::vector<std::string> hostile_keys{"<script>alert(1)</script>",
                                            "\"><img src=x onerror=alert(1)>",
                                            "a'b&amp;\"c",
                                            "x\u202Egpj.exe",
                                            "\u200B",
                                            "%2e%2e/",
                                            "a\\b\n\t\x01",
                                            "ключ 鍵 🔑",
                                            std::string(255, 'k'),
                                            "{\"consumer\":\"other\"}",
                                            "1' or '1'='1"};

TEST_CASE("the pages and their JSON show what is there, and each page has a title and a table") {
  PageKit t;
  t.fail("svc", {"parked 1", "parked 2"}, true);
  t.fail("svc", {"failing"}, false);
  CHECK(TxConsumer(t.pool, "other").consume({.business_key = "done"}, add_effect).outcome == Outcome::consumed);

  const json consumers = t.json("/")["consumers"];
  REQUIRE(consumers.size() == 2);
  CHECK(consumers[0]["consumer"] == "other");
  CHECK(consumers[0]["last_ten_seconds"] == 1);
  CHECK(consumers[1]["parked"] == 2);
  CHECK(consumers[1]["failed"] == 1);
  const json failed = t.json("/failed");
  CHECK(failed["rows"].size() == 3);
  REQUIRE(failed["groups"].size() == 2);
  CHECK(failed["groups"][0]["state"] == "parked");
  CHECK(failed["groups"][0]["messages"] == 2);
  CHECK(failed["groups"][0]["error_class"] == "std::runtime_error");
  CHECK(t.json("/failed?state=failing")["rows"].size() == 1);
  CHECK(t.json("/failed?consumer=other")["rows"].empty());
  const json message = t.json("/message?consumer=svc&key=parked+1");
  CHECK(message["row"]["state"] == "parked");
  CHECK(message["failed"][0]["attempts"] == 1);
  CHECK(t.json("/message?consumer=svc&key=unknown")["row"].is_null());
  CHECK(t.get("/message").status == 200);  // the form

  for (const char* target :
       {"/", "/failed", "/message?consumer=svc&key=failing", "/conflicts", "/leases", "/outbox", "/audit", "/doctor"}) {
    CAPTURE(target);
    const Response response = t.get(target);
    CHECK(response.status == 200);
    CHECK(field(response, "Content-Type") == "text/html; charset=utf-8");
    CHECK(response.body.find("<h1>") != std::string::npos);
    CHECK(response.body.find("aria-label=\"Pages\"") != std::string::npos);
  }
  CHECK(t.get("/nothing").status == 404);
  CHECK(t.get("/api/nothing").status == 404);
}

TEST_CASE("the conflicts, the leases, and the messages and relays of the outbox are shown") {
  PageKit t;
  TxConsumer consumer(t.pool, "svc");
  CHECK(consumer.consume({.business_key = "k", .content = "one"}, add_effect).outcome == Outcome::consumed);
  CHECK(consumer.consume({.business_key = "k", .content = "two"}, add_effect).outcome == Outcome::conflict);
  CHECK(t.json("/conflicts")["rows"][0]["business_key"] == "k");
  CHECK(t.json("/message?consumer=svc&key=k")["conflicts"].size() == 1);

  Outbox::add(*t.db.session(), {.topic = "orders", .key = "k", .payload = "secret"});
  const json outbox = t.json("/outbox");
  CHECK(outbox["rows"][0]["topic"] == "orders");
  CHECK(outbox["status"]["waiting"] == 1);
  CHECK(t.json("/message?consumer=svc&key=k")["outbox"].size() == 1);

  LeaseConsumer leases(t.pool, "svc");
  (void)leases.consume({.business_key = "leased"},
                       [&](Lease&) { CHECK(t.json("/leases")["rows"][0]["business_key"] == "leased"); });
}

TEST_CASE("the groups are those that the filter selects") {
  PageKit t;
  t.fail("svc", {"a", "b", "c"}, true);
  t.fail("other", {"a"}, false);
  CHECK(t.change("failed/discard", {{"consumer", "svc"}, {"business_key", "c"}})["changed"] == 1);
  const auto groups = [&](const std::string& filter) {
    const json view = t.json("/failed" + filter);
    std::string text;
    for (const json& each : view["groups"]) {
      text += each["consumer"].get<std::string>() + ' ' + each["state"].get<std::string>() + ' ' +
              std::to_string(each["messages"].get<int>()) + '\n';
    }
    return text;
  };
  CHECK(eventually([&] { return groups("") == "svc parked 2\nother failing 1\n"; }));
  CHECK(groups("?state=parked") == "svc parked 2\n");
  CHECK(groups("?state=discarded") == "svc discarded 1\n");
  CHECK(groups("?consumer=other") == "other failing 1\n");
  CHECK(groups("?error_class=std%3A%3Aruntime_error&consumer=svc") == "svc parked 2\n");
  CHECK(groups("?error_class=unknown").empty());
  CHECK(groups("?consumer=svc&key=a").empty());
}

TEST_CASE("a hostile key is shown as text, and its button changes exactly this key") {
  PageKit t;
  t.fail("svc", hostile_keys, true);
  const std::string html = t.get("/failed").body;
  for (const char* forbidden : {"<script>alert", "<img", "\u202E", "\u200B", "\x01"}) {
    CHECK(html.find(forbidden) == std::string::npos);
  }
  CHECK(t.json("/failed")["rows"].size() == hostile_keys.size());
  long long left = static_cast<long long>(hostile_keys.size());
  for (const std::string& key : hostile_keys) {
    CAPTURE(key);
    CHECK(t.change("failed/retry", t.body_of_button("/failed", "failed/retry", key))["changed"] == 1);
    CHECK(t.db.number("select count(*) from txinbox_consumed_message where state = 'parked'") == --left);
  }
}

TEST_CASE("a list goes on with its next page") {
  PageKit t;
  std::vector<std::string> keys;
  for (int i = 0; i < 25; ++i) keys.push_back("key " + std::to_string(i));
  t.fail("svc", keys, true);
  std::set<std::string> seen;
  std::string after;
  int pages = 0;
  do {
    const json page = t.json("/failed?limit=10" + (after.empty() ? "" : "&after=" + after));
    for (const json& row : page["rows"]) CHECK(seen.insert(row["business_key"]).second);
    after = page["next"];
    ++pages;
  } while (!after.empty());
  CHECK(pages == 3);
  CHECK(seen.size() == 25);
  CHECK(t.get("/failed?limit=10").body.find("rel=\"next\" href=\"/failed?limit=10&#38;after=") != std::string::npos);
}

TEST_CASE("the page of consumers shows those that the operator asks for, and counts all of them") {
  PageKit t;
  const auto consume = [&](const std::string& name) {
    CHECK(TxConsumer(t.pool, name).consume({.business_key = "k"}, add_effect).outcome == Outcome::consumed);
  };
  for (const char* name : {"a&b +1", "calm", "paused", "zz failing", "zz parked"}) consume(name);
  t.fail("zz failing", {"a"}, false);
  t.fail("zz parked", {"a", "b"}, true);
  CHECK(t.change("pause", {{"consumer", "paused"}, {"reason", "r"}})["changed"] == 1);
  const auto names = [&](const std::string& parameters) {
    std::vector<std::string> found;
    const json view = t.json("/" + parameters);
    for (const json& row : view["consumers"]) found.push_back(row["consumer"]);
    return found;
  };
  using Names = std::vector<std::string>;
  CHECK(names("") == Names{"a&b +1", "calm", "paused", "zz failing", "zz parked"});
  CHECK(names("?consumer=zz+") == Names{"zz failing", "zz parked"});
  CHECK(names("?consumer=ZZ").empty());
  CHECK(names("?state=problems") == Names{"paused", "zz failing", "zz parked"});
  CHECK(names("?state=problems&limit=1&after=paused") == Names{"zz failing"});
  const json first = t.json("/?limit=1");
  CHECK(first["next"] == "a&b +1");
  CHECK(t.json("/?limit=4&after=a")["next"] == "zz failing");
  CHECK(t.json("/?limit=5")["next"] == "");
  CHECK(first["counts"] == json{{"consumers", 5}, {"with_failed", 1}, {"with_parked", 1}, {"with_problems", 3}});
  CHECK(t.json("/?consumer=calm")["pauses"].empty());

  const std::string html = t.get("/?limit=1").body;
  CHECK(html.find("rel=\"next\" href=\"/?limit=1&#38;after=a%26b%20%2B1\"") != std::string::npos);
  CHECK(names("?limit=1&after=a%26b%20%2B1") == Names{"calm"});
  CHECK(html.find("<a href=\"/?state=problems\">3 with problems</a>: 1 with failed messages, 1 with parked messages. "
                  "<a href=\"/failed\">") != std::string::npos);
  for (const char* target : {"/api/?state=parked", "/api/?limit=0", "/api/consumers?limit=1001"}) {
    CHECK(t.get(target).status == 400);
  }
}

TEST_CASE("wrong parameters and bodies get 400 and a sentence, and an unknown change gets 404") {
  PageKit t;
  for (const char* target :
       {"/api/failed?limit=0", "/api/failed?limit=1001", "/api/failed?limit=x", "/api/failed?state=none",
        "/api/failed?after=x", "/api/outbox?id=x", "/api/failed?key=%4", "/api/audit?by=%00"}) {
    CAPTURE(target);
    const Response response = t.get(target);
    CHECK(response.status == 400);
    CHECK(json::parse(response.body)["error"].get<std::string>().size() > 10);
  }
  for (const char* body :
       {"", "[]", "{", "{}", R"({"consumer":7,"business_key":"a"})", R"({"consumer":"","business_key":"a"})",
        R"({"consumer":"svc","state":"discarded","expected":1})",
        R"({"consumer":"svc","business_key":"a","errorclass":"x"})"}) {
    CAPTURE(body);
    CHECK(t.post("/api/failed/retry", body).status == 400);
  }
  CHECK(t.post("/api/forget", "{}").status == 404);
  CHECK(t.post("/api/failed/redrive", R"({"consumer":"svc","business_key":"a"})").status == 400);  // no topic
}

TEST_CASE("what has not changed is not sent again") {
  PageKit t;
  const Response first = t.get("/api/audit");
  auto headers = PageKit::of_ann();
  headers.push_back({"If-None-Match", field(first, "ETag")});
  const Response second = t.get("/api/audit", headers);
  CHECK(second.status == 304);
  CHECK(second.body.empty());
  CHECK(t.change("pause", {{"consumer", "svc"}, {"reason", "r"}})["changed"] == 1);
  CHECK(t.get("/api/audit", headers).status == 200);
  const Response head = t.page.handle({.method = "HEAD", .target = "/", .headers = PageKit::of_ann()});
  CHECK(head.status == 200);
  CHECK(head.body.empty());
  const Response no_page = t.page.handle({.method = "HEAD", .target = "/nothing", .headers = PageKit::of_ann()});
  CHECK(field(no_page, "Content-Length") == std::to_string(t.get("/nothing").body.size()));
}

TEST_CASE("payloads, results and error texts are shown only if the options say so") {
  for (const bool shows : {false, true}) {
    CAPTURE(shows);
    auto options = PageKit::writing();
    options.show_payloads = shows;
    PageKit t(options);
    t.fail("svc", {"a"}, true);
    TxConsumer storing(t.pool, "svc", {.max_attempts = 1, .keep_error_text = true});
    CHECK(storing.consume({.business_key = "b"}, [](soci::session&, Delivery& d) { d.store("the result"); }).outcome ==
          Outcome::consumed);
    (void)storing.consume({.business_key = "c"},
                          [](soci::session&, Delivery&) { throw std::runtime_error("the text of ann"); });
    Outbox::add(t.pool.acquire().session(), {.topic = "orders", .key = "a"});
    t.db.run("update txinbox_outbox_message set last_error = 'the answer for ann'");
    std::string all;
    for (const char* target : {"/failed", "/outbox", "/message?consumer=svc&key=a", "/message?consumer=svc&key=b",
                               "/message?consumer=svc&key=c"}) {
      all += t.get(target).body + t.get(std::string("/api") + target).body;
    }
    for (const char* secret : {"the payload of a", "the result", "the text of ann", "the answer for ann"}) {
      CHECK((all.find(secret) != std::string::npos) == shows);
    }
  }
}

TEST_CASE("a page is served below a path") {
  auto options = PageKit::writing();
  options.path = "/ops/txinbox";
  PageKit t(options);
  CHECK(t.get("/").status == 404);
  CHECK(t.get("/ops/txinbox").status == 200);
  CHECK(t.get("/ops/txinbox/").status == 200);
  CHECK(t.get("/ops/txinbox/api/failed").status == 200);
  CHECK(t.get("/ops/txinbox/page.css").status == 200);
  CHECK(t.get("/ops/txinbox/failed").body.find("href=\"/ops/txinbox/page.css\"") != std::string::npos);
}

TEST_CASE("without the tables, each page says what is wrong, and goes on when they are there") {
  PageKit t;
  t.db.run("alter table txinbox_failed_message rename to gone");
  const Response response = t.get("/api/failed");
  CHECK(response.status == 503);
  CHECK(json::parse(response.body)["error"].get<std::string>().size() > 10);
  CHECK(t.get("/failed").status == 503);
  t.db.run("alter table gone rename to txinbox_failed_message");
  CHECK(t.get("/failed").status == 200);
}

TEST_CASE("a table that is missing is named on the page, and another error is none") {
  PageKit t;
  t.fail("svc", {"a"}, true);
  constexpr const char* message = "/message?consumer=svc&key=a";
  CHECK(t.json(message)["unreadable"].empty());
  CHECK(t.json("/")["unreadable"].empty());
  t.db.run("alter table txinbox_audit rename to audit_gone");
  t.db.run("alter table txinbox_pause rename to pause_gone");
  CHECK(t.json(message)["unreadable"] == json{"audit"});
  CHECK(t.json(message)["audit"].empty());
  CHECK(eventually([&] { return t.json("/")["unreadable"] == json{"pauses"}; }));
  for (const char* target : {"/", message}) {
    CHECK(t.get(target).body.find("The table is missing, or the page's user") != std::string::npos);
  }
  t.db.run("alter table audit_gone rename to txinbox_audit");
  t.db.run("alter table txinbox_audit rename column reason to reason_gone");
  CHECK(t.get(std::string("/api") + message).status == 503);
  t.db.run("alter table txinbox_audit rename column reason_gone to reason");
  t.db.run("alter table pause_gone rename to txinbox_pause");
  CHECK(t.json(message)["unreadable"].empty());
}

TEST_CASE("a page whose user may not read some tables says so") {
  if (on_sqlite3()) return;
  PageKit t;
  t.fail("svc", {"a"}, true);
  const User user(t.db);
  grant_service(user, t.db);
  user.grant("insert on " + schema_of(t.db) + ".txinbox_audit");
  Pool pool = user.pool();
  http::OperatorPage page(pool, PageKit::writing());
  const auto get = [&](const char* target) {
    const Response response = page.handle({.method = "GET", .target = target, .headers = PageKit::of_ann()});
    CAPTURE(response.body);
    REQUIRE(response.status == 200);
    return json::parse(response.body);
  };
  CHECK(get("/api/")["unreadable"] == json{"pauses"});
  const json message = get("/api/message?consumer=svc&key=a");
  CHECK(message["failed"].size() == 1);
  CHECK(message["unreadable"] == json{"outbox", "audit"});
}

TEST_CASE("the whole counts and the findings of doctor come a moment later") {
  PageKit t;
  for (const char* key : {"a", "b"}) {
    CHECK(TxConsumer(t.pool, "svc").consume({.business_key = key}, add_effect).outcome == Outcome::consumed);
  }
  CHECK(eventually([&] { return t.json("/")["consumers"][0]["consumed"] == 2; }));
  CHECK(eventually([&] { return t.json("/doctor")["rows"].is_array(); }));
}

}  // namespace
}  // namespace txinbox::test
