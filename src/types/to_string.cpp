#include <txinbox/error.hpp>
#include <txinbox/finding.hpp>
#include <txinbox/listener.hpp>
#include <txinbox/result.hpp>

#include "types/enum_names.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

constexpr detail::EnumNames<ErrorCode, ErrorCode::unreadable> error_code_names(
    "invalid_key", "invalid_argument", "schema_missing", "schema_outdated", "schema_too_new", "schema_mismatch",
    "unsupported_database", "unsafe_connection", "transaction_open", "transaction_lost", "rejected", "acquire_timeout",
    "nested_consume", "unknown_state", "stopped", "lease_lost", "forked", "access_refused", "retry_later",
    "broker_refused", "result_too_large", "invalid_message", "unreadable");
constexpr detail::EnumNames<EventType, EventType::purged> event_type_names("consumed", "already_consumed", "conflict",
                                                                           "in_progress", "parked", "retry", "torn",
                                                                           "failed", "discarded", "postponed",
                                                                           "lease_taken_over", "purged");
constexpr detail::EnumNames<RunEventType, RunEventType::held> run_event_type_names("acknowledged", "retry",
                                                                                   "dead_letter", "dead_letter_failed",
                                                                                   "unavailable", "dropped", "source",
                                                                                   "status", "tripped", "resumed",
                                                                                   "paused", "unpaused", "held");
constexpr detail::EnumNames<RelayEventType, RelayEventType::parts> relay_event_type_names("published", "failed",
                                                                                          "parked", "error", "parts");
constexpr detail::EnumNames<Outcome, Outcome::postponed> outcome_names("consumed", "already_consumed", "conflict",
                                                                       "in_progress", "parked", "failed", "not_run",
                                                                       "discarded", "postponed");
constexpr detail::EnumNames<Action, Action::stop> action_names("acknowledge", "redeliver", "dead_letter", "stop");
constexpr detail::EnumNames<Claim, Claim::discarded> claim_names("claimed", "already_consumed", "conflict",
                                                                 "in_progress", "parked", "discarded");
constexpr detail::EnumNames<Severity, Severity::error> severity_names("note", "warning", "error");
constexpr detail::EnumNames<ScopeKind, ScopeKind::handler> scope_kind_names("consume", "attempt", "handler");

}  // namespace

std::string_view to_string(ErrorCode code) noexcept { return error_code_names[code]; }
std::string_view to_string(EventType type) noexcept { return event_type_names[type]; }
std::string_view to_string(RunEventType type) noexcept { return run_event_type_names[type]; }
std::string_view to_string(RelayEventType type) noexcept { return relay_event_type_names[type]; }
std::string_view to_string(Outcome outcome) noexcept { return outcome_names[outcome]; }
std::string_view to_string(Action action) noexcept { return action_names[action]; }
std::string_view to_string(Claim claim) noexcept { return claim_names[claim]; }
std::string_view to_string(Severity severity) noexcept { return severity_names[severity]; }
std::string_view to_string(ScopeKind kind) noexcept { return scope_kind_names[kind]; }

TXINBOX_NAMESPACE_END
}  // namespace txinbox
