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

/// How many messages each consumer consumed per second, since somebody looks at the page.
///
/// @threads any number.
class Rates {
 public:
  using Clock = std::chrono::steady_clock;

  /// Adds `per_second` to each consumer of `quick_status`, and remembers it.
  void add(nlohmann::ordered_json& consumers, Clock::time_point now);

  /// A small chart of the remembered rates, as SVG. Empty if there are less than two.
  std::string chart(const std::string& consumer) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::deque<double>, std::less<>> rates_;
  Clock::time_point next_ = {};
};

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
