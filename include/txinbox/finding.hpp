#pragma once

#include <string>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// How bad a finding is.
enum class Severity {
  note,     ///< Worth knowing; nothing to do.
  warning,  ///< Consuming is correct, but something is slow, or not durable, or held for long.
  error,    ///< txinbox refuses to consume, or could not.
};

std::string_view to_string(Severity) noexcept;

/// One thing that makes a database unsafe or slow for the inbox.
struct Finding {
  Severity severity;
  std::string subject;  ///< What it is about: "sync_binlog", "txinbox_consumed_message.business_key".
  std::string found;    ///< What is there.
  std::string remedy;   ///< What to do about it.
};

TXINBOX_NAMESPACE_END
}  // namespace txinbox
