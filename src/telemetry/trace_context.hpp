#pragma once

#include <map>
#include <string>
#include <string_view>

#include <txinbox/incoming.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Whether the text is a valid `traceparent` (W3C Trace Context, level 1): version, trace id, parent id and flags in
/// lower-case hexadecimal digits, and neither of the ids is zero. Later versions may add fields at the end.
bool is_traceparent(std::string_view) noexcept;

/// Copies the trace context of a delivery into the headers of a message: `traceparent` with `tracestate`, and `baggage`
/// (W3C Trace Context and W3C Baggage). A header that the message has is never replaced. What is not valid or too long
/// is not copied: a producer must not be able to break a message that a handler sends.
void copy_trace_context(const Incoming& from, std::map<std::string, std::string>& headers);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
