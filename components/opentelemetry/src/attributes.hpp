#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include <opentelemetry/common/attribute_value.h>
#include <opentelemetry/nostd/string_view.h>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The name with which the tracer and the meter are registered.
constexpr const char* scope_name = "txinbox";

/// Attributes of a span or of a measurement. Their text must outlive the call that gets them.
using Attribute = std::pair<::opentelemetry::nostd::string_view, ::opentelemetry::common::AttributeValue>;
using Attributes = std::vector<Attribute>;

inline ::opentelemetry::nostd::string_view otel_text(std::string_view text) noexcept {
  return {text.data(), text.size()};
}

inline Attribute attribute(std::string_view name, std::string_view value) {
  return {otel_text(name), otel_text(value)};
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
