#include "page/rates.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {
namespace {

using namespace std::chrono_literals;

constexpr auto shown = std::chrono::minutes(10);
constexpr auto between_samples = 5s;
constexpr auto counted = 10s;      // a rate is that of the last ten seconds
constexpr auto longest_gap = 20s;  // after it, the line begins again: nobody had looked at the page
constexpr double width = 120;
constexpr double height = 20;

std::string one_digit(double number) {
  char text[32];
  (void)std::snprintf(text, sizeof text, "%.1f", number);
  return text;
}

}  // namespace

void Rates::add(nlohmann::ordered_json& consumers, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const bool is_due = now >= next_;
  if (is_due) next_ = now + between_samples;
  std::map<std::string, Samples, std::less<>> present;
  for (auto& consumer : consumers) {
    const double rate = consumer["last_ten_seconds"].get<double>() / 10;
    consumer["per_second"] = rate;
    if (!is_due) continue;
    const auto name = consumer["consumer"].get<std::string>();
    Samples& samples = present[name];
    if (const auto found = samples_.find(name); found != samples_.end()) samples = std::move(found->second);
    while (!samples.empty() && now - samples.front().at > shown) samples.pop_front();
    samples.push_back({now, rate});
  }
  if (is_due) samples_ = std::move(present);
}

std::string Rates::chart(const std::string& consumer) const {
  const std::lock_guard lock(mutex_);
  const auto found = samples_.find(consumer);
  if (found == samples_.end()) return {};
  const Samples& samples = found->second;
  const double most = std::max(std::ranges::max_element(samples, {}, &Sample::rate)->rate, 0.1);
  const Clock::time_point begin = samples.back().at - shown;
  const auto point = [&](Clock::time_point at, double rate) {
    const double x = std::chrono::duration<double>(at - begin) / std::chrono::duration<double>(shown) * width;
    return one_digit(std::max(x, 0.0)) + "," + one_digit(height - rate / most * height);
  };
  std::string lines;
  std::optional<Clock::time_point> last;
  for (const Sample& each : samples) {
    const bool continues = last && each.at - *last <= longest_gap;
    if (!continues) lines += (last ? "\"/>" : "") + ("<polyline points=\"" + point(each.at - counted, each.rate));
    lines += " " + point(each.at, each.rate);
    last = each.at;
  }
  return "<svg class=\"chart\" viewBox=\"0 -1 " + one_digit(width) +
         " 22\" role=\"img\" aria-label=\"the rate of the last ten minutes, at most " + one_digit(most) +
         " a second\">" + lines + "\"/></svg>";
}

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
