#include "page/rates.hpp"

#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {
namespace {

constexpr std::size_t most_samples = 60;
constexpr auto between_samples = std::chrono::milliseconds(1500);

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
  for (auto& consumer : consumers) {
    const double rate = consumer["last_ten_seconds"].get<double>() / 10;
    consumer["per_second"] = rate;
    if (!is_due) continue;
    auto& rates = rates_[consumer["consumer"].get<std::string>()];
    rates.push_back(rate);
    if (rates.size() > most_samples) rates.pop_front();
  }
}

std::string Rates::chart(const std::string& consumer) const {
  const std::lock_guard lock(mutex_);
  const auto found = rates_.find(consumer);
  if (found == rates_.end() || found->second.size() < 2) return {};
  const auto& rates = found->second;
  const double most = std::max(*std::ranges::max_element(rates), 0.1);
  constexpr double height = 20;
  constexpr double step = 2;
  std::string points;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    points += one_digit(static_cast<double>(i) * step) + "," + one_digit(height - rates[i] / most * height) + " ";
  }
  points.pop_back();
  return "<svg class=\"chart\" viewBox=\"0 -1 " + one_digit(step * (most_samples - 1)) +
         " 22\" role=\"img\" aria-label=\"the rate of the last minutes, at most " + one_digit(most) +
         " a second\"><polyline points=\"" + points + "\"/></svg>";
}

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
