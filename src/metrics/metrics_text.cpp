#include "metrics/metrics_text.hpp"

#include <iterator>

#include <fmt/format.h>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

void append_escaped(std::string& out, std::string_view value) {
  for (const char c : value) {
    switch (c) {
      case '\\':
        out += "\\\\";
        break;
      case '"':
        out += "\\\"";
        break;
      case '\n':
        out += "\\n";
        break;
      default:
        out += c;
    }
  }
}

}  // namespace

void MetricsText::open(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  fmt::format_to(std::back_inserter(text_), "# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
}

void MetricsText::begin_sample(std::string_view suffix, const Labels& labels) {
  text_ += name_;
  text_ += suffix;
  char before = '{';
  for (const auto& [name, value] : labels) {
    text_ += before;
    text_ += name;
    text_ += "=\"";
    append_escaped(text_, value);
    text_ += '"';
    before = ',';
  }
  text_ += before == '{' ? " " : "} ";
}

void MetricsText::sample(std::string_view suffix, const Labels& labels, std::uint64_t value) {
  begin_sample(suffix, labels);
  fmt::format_to(std::back_inserter(text_), "{}\n", value);
}

void MetricsText::sample(std::string_view suffix, const Labels& labels, double value) {
  begin_sample(suffix, labels);
  fmt::format_to(std::back_inserter(text_), "{}\n", value);
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
