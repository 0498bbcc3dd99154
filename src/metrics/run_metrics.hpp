#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

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
  struct Counts {
    std::uint64_t settled = 0;
    std::uint64_t retries = 0;
    std::uint64_t dropped = 0;
    std::uint64_t outages = 0;
    std::uint64_t dead_letter_failures = 0;
    std::map<std::string, std::uint64_t, std::less<>> dead_letters = {};  ///< How many dead letters each reason has.
    std::optional<SourceStatus> status = {};
  };

  Counts& counts_of(const RunEvent&);

  template <class ValueOf>
  void write_all(MetricsText&, std::string_view name, std::string_view type, std::string_view help,
                 const ValueOf&) const;
  void write_dead_letters(MetricsText&) const;

  /// Compares the names of a source and a consumer without copies of them.
  struct Less {
    using is_transparent = void;
    bool operator()(const auto& a, const auto& b) const {
      return std::pair<std::string_view, std::string_view>(a) < std::pair<std::string_view, std::string_view>(b);
    }
  };

  std::map<std::pair<std::string, std::string>, Counts, Less> counts_;  ///< By source and consumer.
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
