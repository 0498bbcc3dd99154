#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <string>

#include <nlohmann/json_fwd.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {

/// How many messages each consumer consumed per second, in the last ten minutes in which somebody looked at the page.
///
/// It remembers at most 121 samples of each consumer, and forgets a consumer that is not there any more.
///
/// @threads any number.
class Rates {
 public:
  using Clock = std::chrono::steady_clock;

  /// Adds `per_second` to each consumer of `quick_status`, and remembers it. `consumers` must be all of them.
  void add(nlohmann::ordered_json& consumers, Clock::time_point now);

  /// A small chart of the remembered rates, as SVG. It ends with the latest one. Where nobody looked, there is no line.
  /// Empty if there is no rate.
  std::string chart(const std::string& consumer) const;

 private:
  struct Sample {
    Clock::time_point at;
    double rate;
  };
  using Samples = std::deque<Sample>;

  mutable std::mutex mutex_;
  std::map<std::string, Samples, std::less<>> samples_;
  Clock::time_point next_ = {};
};

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
