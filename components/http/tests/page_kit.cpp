#include "page_kit.hpp"

#include <algorithm>
#include <stdexcept>

#include <doctest/doctest.h>

#include "shared/base64.hpp"
#include "support/eventually.hpp"

namespace txinbox::test {

std::string basic(const std::string& name, const std::string& password) {
  return "Basic " + component::base64(name + ":" + password);
}

std::vector<http::Header> PageKit::of_ann() {
  return {{"Host", "localhost:8317"},           {"Origin", "http://localhost:8317"},
          {"Sec-Fetch-Site", "same-origin"},    {"Authorization", basic("ann", page_token)},
          {"Content-Type", "application/json"}, {"X-Txinbox", "1"}};
}

void PageKit::fail(const std::string& consumer, const std::vector<std::string>& keys, bool parks) {
  TxConsumer failing(pool, consumer, {.max_attempts = parks ? 1 : 0});
  for (const std::string& key : keys) {
    try {
      (void)failing.consume({.business_key = key, .payload = "the payload of " + key},
                            [](soci::session&, Delivery&) { throw std::runtime_error("no stock"); });
    } catch (const std::runtime_error&) {
      CHECK_FALSE(parks);
    }
  }
}

http::Response PageKit::get(const std::string& target, std::vector<http::Header> headers) {
  return page.handle({.method = "GET", .target = target, .headers = std::move(headers)});
}

nlohmann::json PageKit::json(const std::string& target) {
  nlohmann::json view;
  CHECK(eventually([&] {
    const http::Response response = get("/api" + target);
    CAPTURE(response.body);
    CHECK(response.status == 200);
    CHECK(field(response, "Content-Type") == "application/json");
    view = nlohmann::json::parse(response.body);
    return std::ranges::none_of(view.items(), [](const auto& member) {
      return member.key().ends_with("_age_seconds") && member.value().is_null();
    });
  }));
  return view;
}

http::Response PageKit::post(const std::string& target, const std::string& body, std::vector<http::Header> headers) {
  return page.handle({.method = "POST", .target = target, .headers = std::move(headers), .body = body});
}

nlohmann::json PageKit::change(const std::string& action, const nlohmann::json& body) {
  const http::Response response = post("/api/" + action, body.dump());
  CAPTURE(response.body);
  CHECK(response.status == 200);
  return nlohmann::json::parse(response.body);
}

nlohmann::json PageKit::body_of_button(const std::string& target, const std::string& action, const std::string& key) {
  const std::string html = get(target).body;
  const std::string begin = "data-action=\"" + action + "\" data-body=\"";
  for (auto at = html.find(begin); at != std::string::npos; at = html.find(begin, at + 1)) {
    std::string text = html.substr(at + begin.size(), html.find("\" data-question", at) - at - begin.size());
    for (const auto& [reference, character] :
         {std::pair{"&#34;", "\""}, {"&#60;", "<"}, {"&#62;", ">"}, {"&#39;", "'"}, {"&#38;", "&"}}) {
      for (auto found = text.find(reference); found != std::string::npos; found = text.find(reference)) {
        text.replace(found, 5, character);
      }
    }
    auto body = nlohmann::json::parse(text);
    if (body.value("business_key", "") == key) return body;
  }
  FAIL("there is no button ", action, " for this key");
  return {};
}

}  // namespace txinbox::test
