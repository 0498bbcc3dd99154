// Who may read the operators' page, and who may change something there.

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <txinbox/error.hpp>
#include <txinbox/operations.hpp>

#include "page_kit.hpp"

namespace txinbox::test {
namespace {

using http::Header;
using http::OperatorPage;
using http::Response;

std::vector<Header> with(std::string_view name, const std::string& value) {
  std::vector<Header> headers = PageKit::of_ann();
  std::erase_if(headers, [&](const Header& each) { return each.name == name; });
  headers.push_back({std::string(name), value});
  return headers;
}

std::vector<Header> without(std::string_view name) {
  std::vector<Header> headers = PageKit::of_ann();
  CHECK(std::erase_if(headers, [&](const Header& each) { return each.name == name; }) == 1);
  return headers;
}

TEST_CASE("a request for another host is refused, whatever it asks") {
  PageKit t;
  t.fail("svc", {"a"}, true);
  for (const char* host :
       {"evil.example", "evil.example:8317", "localhost.evil.example", "", "[::2]:8317", "127.0.0.2"}) {
    CAPTURE(host);
    CHECK(t.get("/", with("Host", host)).status == 421);
    CHECK(t.post("/api/failed/retry", R"({"consumer":"svc","business_key":"a"})", with("Host", host)).status == 421);
  }
  CHECK(t.get("/", without("Host")).status == 421);
  for (const char* host : {"localhost", "LOCALHOST:1", "127.0.0.1:8317", "[::1]:8317"}) {
    CAPTURE(host);
    CHECK(t.get("/", with("Host", host)).status == 200);
  }
  CHECK(t.db.claim_of("a") == "parked");
}

TEST_CASE("with a token, nobody reads or changes anything without it") {
  PageKit t;
  t.fail("svc", {"a"}, true);
  const std::vector<std::string> wrong{
      basic("ann", "wrong"), basic("ann", page_token + "x"), basic("", page_token),
      basic("ann", ""),      "Bearer " + page_token,         "Basic",
      "Basic !!!!",          basic("a\nb", page_token),      basic(std::string(256, 'x'), page_token)};
  for (const std::string& value : wrong) {
    CAPTURE(value);
    const auto headers = with("Authorization", value);
    for (const char* target : {"/", "/failed", "/api/failed", "/page.css", "/doctor"}) {
      const Response response = t.get(target, headers);
      CHECK(response.status == 401);
      CHECK(field(response, "WWW-Authenticate").starts_with("Basic "));
      CHECK(response.body.find(page_token) == std::string::npos);
    }
    CHECK(t.post("/api/failed/retry", R"({"consumer":"svc","business_key":"a"})", headers).status == 401);
  }
  CHECK(t.get("/", without("Authorization")).status == 401);
  CHECK(t.db.claim_of("a") == "parked");
}

TEST_CASE("a page of another origin can change nothing") {
  PageKit t;
  t.fail("svc", {"a"}, true);
  const std::string body = R"({"consumer":"svc","business_key":"a"})";
  CHECK(t.post("/api/failed/retry", body, with("Origin", "http://evil.example")).status == 403);
  CHECK(t.post("/api/failed/retry", body, with("Origin", "http://localhost:9999")).status == 403);
  CHECK(t.post("/api/failed/retry", body, with("Origin", "null")).status == 403);
  CHECK(t.post("/api/failed/retry", body, with("Sec-Fetch-Site", "cross-site")).status == 403);
  CHECK(t.post("/api/failed/retry", body, with("Sec-Fetch-Site", "same-site")).status == 403);
  CHECK(t.post("/api/failed/retry", body, without("X-Txinbox")).status == 403);  // a form cannot send it
  CHECK(t.post("/api/failed/retry", body, with("Content-Type", "text/plain")).status == 415);
  CHECK(t.post("/api/failed/retry", body, without("Content-Type")).status == 415);
  CHECK(t.get("/api/failed/retry").status == 404);
  CHECK(t.post("/failed/retry", body).status == 405);
  CHECK(t.db.claim_of("a") == "parked");
  CHECK(t.post("/api/failed/retry", body, without("Origin")).status == 200);  // a program that has signed in
  CHECK(t.db.claim_of("a") == "none");
}

TEST_CASE("a page that is read-only shows everything, has no button, and changes nothing") {
  PageKit t(http::OperatorPageOptions{.anyone_may_read = true});
  t.fail("svc", {"a"}, true);
  for (const char* target : {"/", "/failed", "/message?consumer=svc&key=a", "/outbox"}) {
    const Response response = t.get(target, {{"Host", "localhost"}});
    CHECK(response.status == 200);
    CHECK(response.body.find("<button type=\"button\"") == std::string::npos);
    CHECK(response.body.find("This page is read-only.") != std::string::npos);
  }
  for (const char* action : {"failed/retry", "failed/discard", "failed/redrive", "pause", "resume", "outbox/retry"}) {
    CHECK(t.post(std::string("/api/") + action, R"({"consumer":"svc","business_key":"a","reason":"r"})").status == 403);
  }
  CHECK(t.db.claim_of("a") == "parked");
  CHECK(t.json("/audit")["rows"].empty());
}

TEST_CASE("who has signed in, but may not write, reads only") {
  PageKit t(http::OperatorPageOptions{.sign_in = http::sign_in_with_token(page_token)});
  t.fail("svc", {"a"}, true);
  CHECK(t.get("/failed").body.find("<button type=\"button\"") == std::string::npos);
  CHECK(t.post("/api/failed/retry", R"({"consumer":"svc","business_key":"a"})").status == 403);
}

TEST_CASE("a proxy names the operator") {
  PageKit t(http::OperatorPageOptions{
      .sign_in = http::sign_in_by_header("X-Forwarded-User"), .challenge = "", .may_write = true});
  t.fail("svc", {"a"}, true);
  const Response refused = t.get("/");
  CHECK(refused.status == 401);
  CHECK(field(refused, "WWW-Authenticate") == "-");
  CHECK(
      t.post("/api/failed/retry", R"({"consumer":"svc","business_key":"a"})", with("X-Forwarded-User", "bob")).status ==
      200);
  CHECK(list_audit(t.pool.acquire()).at(0).actor == "bob");
  auto twice = with("X-Forwarded-User", "bob");  // the client's own field, and that of the proxy
  twice.insert(twice.begin(), {"X-Forwarded-User", "mallory"});
  CHECK(t.get("/", twice).status == 401);
}

TEST_CASE("a page of another origin cannot make the browser load the page, but can link to it") {
  PageKit t;
  CHECK(t.get("/failed", with("Sec-Fetch-Site", "cross-site")).status == 403);
  CHECK(t.get("/api/failed", with("Sec-Fetch-Site", "same-site")).status == 403);
  auto link = with("Sec-Fetch-Site", "cross-site");
  link.push_back({"Sec-Fetch-Mode", "navigate"});
  CHECK(t.get("/failed", link).status == 200);
}

TEST_CASE("the port that belongs to the scheme may be left out") {
  auto options = PageKit::writing();
  options.hosts = {"ops.example"};
  PageKit t(options);
  t.fail("svc", {"a"}, true);
  auto headers = with("Origin", "https://ops.example");
  for (Header& each : headers) {
    if (each.name == "Host") each.value = "ops.example:443";
  }
  CHECK(t.post("/api/failed/retry", R"({"consumer":"svc","business_key":"a"})", headers).status == 200);
}

TEST_CASE("each answer forbids other origins to load or show it") {
  PageKit t;
  for (const char* target :
       {"/", "/failed", "/page.js", "/page.css", "/api/failed", "/nothing", "/api/failed?limit=0"}) {
    CAPTURE(target);
    const Response response = t.get(target);
    CHECK(field(response, "Content-Security-Policy").find("default-src 'none'") == 0);
    CHECK(field(response, "Content-Security-Policy").find("unsafe") == std::string::npos);
    CHECK(field(response, "Content-Security-Policy").find("frame-ancestors 'none'") != std::string::npos);
    CHECK(field(response, "X-Content-Type-Options") == "nosniff");
    CHECK(field(response, "Cross-Origin-Resource-Policy") == "same-origin");
    CHECK(field(response, "Access-Control-Allow-Origin") == "-");
    for (const char* forbidden : {" style=", " onclick=", "<script>", "http://", "https://"}) {
      CHECK(response.body.find(forbidden) == std::string::npos);
    }
  }
}

TEST_CASE("options that are not safe are refused") {
  PageKit t;
  CHECK_THROWS_AS(OperatorPage(t.pool, {.may_write = true}), Error);
  for (const char* path : {"txinbox", "/txinbox/", "/a b", "/a%20b", "//evil.example", "/a?b"}) {
    CHECK_THROWS_AS(OperatorPage(t.pool, {.path = path, .anyone_may_read = true}), Error);
  }
  CHECK_THROWS_AS(OperatorPage(t.pool, {.hosts = {}, .anyone_may_read = true}), Error);
  CHECK_THROWS_AS(OperatorPage(t.pool, {}), Error);  // open to everybody by mistake
  CHECK_THROWS_AS((void)http::sign_in_with_token("too short"), Error);
}

}  // namespace
}  // namespace txinbox::test
