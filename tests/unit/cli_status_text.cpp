#include <chrono>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/utc_time.hpp"
#include "cli/status_text.hpp"
#include "console/utf8.hpp"

using namespace txinbox;
using namespace txinbox::cli;
using namespace std::chrono_literals;

namespace {

DatabaseTime time(std::string_view text) { return detail::parse_utc(text).value(); }

InboxStatus example() {
  InboxStatus status{.database = "postgresql", .server_version = "15.14", .schema_version = 4, .consumers = {}};
  status.rows = 10'000'021;
  status.consumers.push_back({.consumer = "notification-service",
                              .consumed = 10'000'000,
                              .consuming = 9'999,
                              .parked = 9'999,
                              .oldest = time("2026-01-31 23:59:59.123456"),
                              .newest = time("2026-03-31 23:59:59.123456"),
                              .discarded = 9'999,
                              .failed = 9'999,
                              .conflicts = 9'999,
                              .leases_held = 9'999,
                              .expired_leases = 9'999,
                              .last_minute = 600'000,
                              .duplicates = 1'000'000,
                              .oldest_duplicate = 193h,
                              .oldest_duplicate_at = time("2026-02-28 23:59:59.123456"),
                              .retention = 720h,
                              .purge_backlog = 1'000'000,
                              .purged_at = time("2026-03-30 23:59:59.123456"),
                              .purged = 12});
  status.consumers.emplace_back().consumer = "orders";
  return status;
}

std::size_t widest(const std::string& text) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    width = std::max(width, count_characters(text.substr(at, end - at)));
    at = end + 1;
  }
  return width;
}

}  // namespace

TEST_CASE("status fits into 120 columns") {
  CHECK(widest(status_text(example())) <= 120);
  CHECK(widest(status_text(example(), Rates{{"notification-service", 10'000}, {"orders", 0.05}})) <= 120);
}

TEST_CASE("status shows what is not known as a dash, and rates only when it watches") {
  const std::string once = status_text(example());
  CHECK(once.find("NOW") == std::string::npos);
  CHECK(once.find("10,000 ") != std::string::npos);  // 600,000 in the last minute
  CHECK(once.find("8d1h") != std::string::npos);
  CHECK(once.find(" 30d ") != std::string::npos);
  const std::string first = status_text(example(), Rates{});
  CHECK(first.find("NOW") != std::string::npos);
  const std::string orders = first.substr(first.find("\norders"), first.find('\n', first.find("\norders") + 1));
  CHECK(orders.find(" - ") != std::string::npos);
}

TEST_CASE("rates are differences per second, and never negative") {
  InboxStatus before = example();
  InboxStatus now = example();
  now.consumers[0].consumed += 500;
  before.consumers[1].consumed = 7;
  now.consumers.emplace_back().consumer = "new";
  now.consumers.back().consumed = 4;
  const Rates rates = rates_between(before, now, 2s);
  CHECK(rates.at("notification-service") == 250);
  CHECK(rates.at("orders") == 0);
  CHECK(rates.at("new") == 2);
  CHECK(rates_between(before, now, 0s).at("new") == 0);
}

TEST_CASE("status says how its connection is encrypted, and nothing where it is not") {
  InboxStatus status = example();
  CHECK(status_text(status, std::nullopt).find("encrypted") == std::string::npos);
  CHECK(nlohmann::json::parse(status_json(status, std::nullopt)).at("encryption") == "");
  status.encryption = "TLSv1.3, TLS_AES_256_GCM_SHA384";
  CHECK(status_text(status, std::nullopt).find("\nencrypted: TLSv1.3, TLS_AES_256_GCM_SHA384\n") != std::string::npos);
  CHECK(nlohmann::json::parse(status_json(status, std::nullopt)).at("encryption") == status.encryption);
}

TEST_CASE("the JSON of status has all that is known") {
  const auto json = nlohmann::json::parse(status_json(example(), Rates{{"orders", 1.5}}));
  const auto& first = json.at("consumers").at(0);
  for (const char* name : {"consumed", "consuming", "parked", "oldest", "newest", "discarded", "failed", "conflicts",
                           "duplicates", "leases_held", "expired_leases", "last_minute", "oldest_duplicate_at",
                           "purge_backlog", "purged_at", "purged"}) {
    CAPTURE(name);
    CHECK(first.contains(name));
  }
  CHECK(first.at("oldest_duplicate_ms") == 694'800'000);
  CHECK(first.at("retention_s") == 2'592'000);
  CHECK(first.at("now_per_second").is_null());
  const auto& second = json.at("consumers").at(1);
  CHECK(second.at("oldest_duplicate_ms").is_null());
  CHECK(second.at("retention_s").is_null());
  CHECK(second.at("now_per_second") == 1.5);
  CHECK_FALSE(nlohmann::json::parse(status_json(example())).at("consumers").at(0).contains("now_per_second"));
}
