#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <txinbox/listener.hpp>
#include <txinbox/source.hpp>
#include <txinbox/version.hpp>

#include "metrics/metrics_text.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Counts what `run` does at the broker. The caller locks.
class RunMetrics {
 public:
  void count(const RunEvent&);
  void write(MetricsText&) const;

 private:
  template <class Value>
  using ByName = std::map<std::string, Value, std::less<>>;

  struct Counts {
    std::uint64_t acknowledged = 0;
    std::uint64_t retries = 0;
    std::uint64_t dropped = 0;
    std::uint64_t outages = 0;
    std::uint64_t trips = 0;
    std::uint64_t held = 0;
    bool is_tripped = false;
    bool is_paused = false;
    std::uint64_t dead_letter_failures = 0;
    ByName<std::uint64_t> dead_letters = {};  ///< How many dead letters each reason has.
    std::optional<SourceStatus> status = {};
  };

  template <class ValueOf>
  void write_all(MetricsText&, std::string_view name, std::string_view type, std::string_view help,
                 const ValueOf&) const;
  void write_dead_letters(MetricsText&) const;

  ByName<ByName<Counts>> counts_;  ///< Of each source, of each consumer.
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
