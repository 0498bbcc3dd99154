#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include <txinbox/outbox.hpp>
#include <txinbox/source.hpp>

namespace txinbox::component {

/// The name under which a header is listed or published if its own name belongs to the broker or to the publisher. The
/// rule is in `Incoming::headers` and in `Publisher`.
inline std::string renamed_header(std::string_view name) { return "header:" + std::string(name); }

/// The name under which a publisher publishes a header of a message. `own`: the headers that the publisher writes
/// itself.
inline std::string published_name(const OutgoingMessage& message, const std::string& name,
                                  std::span<const std::string_view> own) {
  if (std::ranges::find(own, name) == own.end()) return name;
  std::string other = renamed_header(name);
  while (message.headers.contains(other)) other = renamed_header(other);
  return other;
}

}  // namespace txinbox::component
