// `txinbox serve`: the operators' page of the command, through a socket.

#include <signal.h>

#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <httplib.h>
#include <nlohmann/json.hpp>
#include <txinbox/operations.hpp>

#include "page_kit.hpp"
#include "support/command.hpp"
#include "support/environment.hpp"

namespace txinbox::test {
namespace {

using nlohmann::json;

/// The command on a free port.
struct Serving {
  Command command;
  json first_line;

  Serving(const std::string& db, Command::Arguments arguments) : command(with_defaults(std::move(arguments)), db) {
    REQUIRE(command.printed("}\n"));
    first_line = json::parse(command.output());
  }

  static Command::Arguments with_defaults(Command::Arguments arguments) {
    arguments.insert(arguments.begin(), {"serve", "--listen", "127.0.0.1:0", "--json"});
    return arguments;
  }

  httplib::Client client() const {
    const auto url = first_line.at("url").get<std::string>();
    return httplib::Client(url.substr(0, url.size() - 1));
  }

  void ends() {
    command.signal(SIGTERM);
    CHECK(command.wait().status == 0);
  }
};

std::vector<Ended> refused(const std::string& db) {
  return {run({"serve", "--listen", "8317"}, db),
          run({"serve", "--listen", "0.0.0.0:0", "--user-header", "X-User"}, db),
          run({"serve", "--listen", "127.0.0.1:99999"}, db),
          run({"serve", "--path", "x"}, db),
          run({"serve", "--listen", "192.0.2.1:0", "--write"}, db),
          run({"serve", "--listen", "0.0.0.0:0"}, db),
          run({"serve", "--host", "ops.example:443"}, db)};
}

TEST_CASE("the command serves a page that is read-only, and ends with SIGTERM") {
  PageKit t;
  t.fail("svc", {"a"}, true);
  Serving serving(t.db.url(), {});
  CHECK(serving.first_line.at("may_write") == false);
  CHECK_FALSE(serving.first_line.contains("token"));
  auto client = serving.client();
  const auto page = client.Get("/failed");
  REQUIRE(page);
  CHECK(page->status == 200);
  CHECK(page->body.find("This page is read-only.") != std::string::npos);
  CHECK(client.Get("/page.js")->get_header_value("Content-Type") == "text/javascript; charset=utf-8");
  const auto head = client.Head("/page.css");
  REQUIRE(head);
  CHECK(head->body.empty());
  CHECK(head->get_header_value_count("Content-Length") == 1);
  CHECK(head->get_header_value("Content-Length") == std::to_string(client.Get("/page.css")->body.size()));
  const httplib::Headers header{{"X-Txinbox", "1"}};
  CHECK(client.Post("/api/failed/retry", header, R"({"consumer":"svc","business_key":"a"})", "application/json")
            ->status == 403);
  const httplib::Headers other_host{{"Host", "evil.example"}};
  CHECK(client.Get("/failed", other_host)->status == 421);
  CHECK(t.db.claim_of("a") == "parked");
  serving.ends();
}

TEST_CASE("with --write, the operator signs in with the password that the command prints") {
  PageKit t;
  t.fail("svc", {"a"}, true);
  Serving serving(t.db.url(), {"--write"});
  auto client = serving.client();
  CHECK(client.Get("/")->status == 401);
  client.set_basic_auth("ann", serving.first_line.at("token").get<std::string>());
  CHECK(client.Get("/")->status == 200);
  const httplib::Headers header{{"X-Txinbox", "1"}};
  const auto changed = client.Post("/api/failed/retry", header, R"({"consumer":"svc","business_key":"a","reason":"r"})",
                                   "application/json");
  CHECK(changed->status == 200);
  CHECK(t.db.claim_of("a") == "none");
  CHECK(list_audit(t.pool.acquire()).at(0).actor == "ann");
  CHECK(client.Post("/api/failed/retry", header, std::string(70'000, ' '), "application/json")->status == 413);
  serving.ends();
}

TEST_CASE("the server limits a body in chunks, refuses parts of an answer, and shares its port with no other") {
  const PageKit t;
  Serving serving(t.db.url(), {});
  auto client = serving.client();
  const auto chunks = [](std::size_t offset, httplib::DataSink& sink) {
    if (offset >= 1'000'000) return sink.done(), true;
    return sink.write(std::string(10'000, ' ').data(), 10'000);
  };
  const auto refused_body = client.Post("/api/pause", {}, chunks, "application/json");
  CHECK((!refused_body || refused_body->status == 413));  // the connection can be closed before the answer is read
  const httplib::Headers parts{{"Range", "bytes=0-9,0-9"}};
  CHECK(client.Get("/failed", parts)->status == 416);
  const auto url = serving.first_line.at("url").get<std::string>();
  const std::string port = url.substr(url.rfind(':') + 1, url.size() - url.rfind(':') - 2);
  CHECK(run({"serve", "--listen", "127.0.0.1:" + port}, t.db.url()).status == 2);
  serving.ends();
}

TEST_CASE("an address or a path that cannot be served is a wrong command line") {
  const PageKit t;
  for (const Ended& ended : refused(t.db.url())) {
    CAPTURE(ended.err);
    CHECK(ended.status == 2);
    CHECK(ended.err.starts_with("txinbox: "));
  }
}

TEST_CASE("the rows of the page's JSON are those of the command's --json") {
  PageKit t;
  t.fail("svc", {"a", "b"}, true);
  TxConsumer consumer(t.pool, "svc");
  CHECK(consumer.consume({.business_key = "k", .content = "one"}, add_effect).outcome == Outcome::consumed);
  CHECK(consumer.consume({.business_key = "k", .content = "two"}, add_effect).outcome == Outcome::conflict);
  Outbox::add(*t.db.session(), {.topic = "orders", .key = "k"});
  CHECK(t.change("pause", {{"consumer", "svc"}, {"reason", "r"}})["changed"] == 1);
  const std::vector<std::pair<std::string, Command::Arguments>> same{{"/failed", {"failed", "list"}},
                                                                     {"/conflicts", {"conflicts"}},
                                                                     {"/leases", {"leases"}},
                                                                     {"/outbox", {"outbox", "list"}},
                                                                     {"/audit", {"audit"}}};
  for (const auto& each : same) {
    const std::string& target = each.first;
    Command::Arguments arguments = each.second;
    CAPTURE(target);
    arguments.push_back("--json");
    json of_page = t.json(target)["rows"];
    json of_command = json::parse(run(arguments, t.db.url()).out);
    for (json* rows : {&of_page, &of_command}) {
      for (json& row : *rows) {
        row.erase("age_seconds");
        row.erase("age_ms");
      }
    }
    CHECK(of_page == of_command);
  }
}

}  // namespace
}  // namespace txinbox::test
