// The rates of the consumers on the operators' page, and their charts.

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "page/rates.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

struct Looks {
  http::Rates rates;
  http::Rates::Clock::time_point now = http::Rates::Clock::now();

  nlohmann::ordered_json look(const std::vector<std::string>& consumers, int last_ten_seconds) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const std::string& each : consumers) {
      rows.push_back({{"consumer", each}, {"last_ten_seconds", last_ten_seconds}});
    }
    rates.add(rows, now);
    return rows;
  }

  /// The points of each line of the chart.
  std::vector<std::string> lines() const {
    const std::string chart = rates.chart("svc");
    std::vector<std::string> found;
    const std::string begin = "<polyline points=\"";
    for (auto at = chart.find(begin); at != std::string::npos; at = chart.find(begin, at + 1)) {
      const auto from = at + begin.size();
      found.push_back(chart.substr(from, chart.find('"', from) - from));
    }
    return found;
  }
};

TEST_CASE("the page draws the rates by their time, and no line where nobody looked") {
  Looks t;
  CHECK(t.lines().empty());
  CHECK(t.look({"svc"}, 20)[0]["per_second"] == 2.0);
  CHECK(t.lines() == std::vector<std::string>{"118.0,0.0 120.0,0.0"});
  t.now += 10s;
  t.look({"svc"}, 10);
  CHECK(t.lines() == std::vector<std::string>{"116.0,0.0 118.0,0.0 120.0,10.0"});
  t.now += 5min;
  t.look({"svc"}, 0);
  CHECK(t.lines() == std::vector<std::string>{"56.0,0.0 58.0,0.0 60.0,10.0", "118.0,20.0 120.0,20.0"});
  CHECK(t.rates.chart("svc").find("at most 2.0 a second") != std::string::npos);
}

TEST_CASE("the page forgets rates after ten minutes, and those of consumers that are gone") {
  Looks t;
  t.look({"gone", "svc"}, 20);
  CHECK_FALSE(t.rates.chart("gone").empty());
  t.now += 1s;
  t.look({"svc"}, 20);  // too early for a sample
  CHECK_FALSE(t.rates.chart("gone").empty());
  t.now += 10min;
  t.look({"svc"}, 10);
  CHECK(t.rates.chart("gone").empty());
  CHECK(t.lines() == std::vector<std::string>{"118.0,0.0 120.0,0.0"});
  for (int i = 0; i < 1000; ++i) {
    t.now += 2s;
    t.look({"svc"}, 10);
  }
  REQUIRE(t.lines().size() == 1);
  CHECK(std::ranges::count(t.lines()[0], ',') <= 122);
}

}  // namespace
}  // namespace txinbox::test
