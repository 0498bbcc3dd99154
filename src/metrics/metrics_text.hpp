#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

/// Writes samples in Prometheus' text exposition format 0.0.4.
class MetricsText {
 public:
  /// Begins a metric; its samples follow. `help` is plain text in one line.
  void open(std::string_view name, std::string_view type, std::string_view help);

  /// Writes a sample. `suffix` names the part of a histogram ("_bucket", "_sum", "_count"); otherwise it is empty.
  void sample(std::string_view suffix, const Labels& labels, std::uint64_t value);
  void sample(std::string_view suffix, const Labels& labels, double value);

  std::string take() { return std::move(text_); }

 private:
  void begin_sample(std::string_view suffix, const Labels& labels);

  std::string name_;
  std::string text_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
