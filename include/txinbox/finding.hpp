#pragma once

/// @file
/// One thing that `diagnose` reports.

#include <string>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

/// How serious a finding is.
enum class Severity {
  note,     ///< It is good to know. No action is necessary.
  warning,  ///< Consuming is correct, but an operator should act: something is slow, not durable, or blocked for long.
  error,    ///< txinbox refuses to consume, or could not consume.
};

/// The name of the enumerator, such as "warning".
std::string_view to_string(Severity) noexcept;

/// One thing that makes a database unsafe or slow for the inbox, or that an operator should know.
struct Finding {
  Severity severity;  ///< Whether somebody must act (`error`), should act (`warning`), or only should know it (`note`).
  std::string subject;  ///< The thing that it concerns: "sync_binlog", "txinbox_consumed_message.business_key".
  std::string found;    ///< The fact that was found there.
  std::string remedy;   ///< The action to take.
};

TXINBOX_API_END
}  // namespace txinbox
