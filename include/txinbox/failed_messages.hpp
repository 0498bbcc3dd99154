#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/version.hpp>

namespace soci {
class session;
}

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// What has become of a message that failed.
enum class FailedState {
  failing,    ///< The next delivery runs.
  running,    ///< A lease is held, or has run out: a delivery runs, or its process died.
  parked,     ///< Given up: later deliveries get `parked`, until `retry_failed`.
  torn,       ///< Its handler committed the transaction itself: repair the data, then `forget`.
  discarded,  ///< Given up for good: later deliveries get `discarded`.
};

std::string_view to_string(FailedState) noexcept;

/// A message that failed and is not consumed by now. Times are UTC, as "2026-01-31 23:59:59.123456".
struct FailedMessage {
  std::string consumer;
  std::string business_key;
  std::string message_id;  ///< The broker's id of the last delivery that failed; empty when none was given.
  FailedState state = FailedState::failing;
  int attempts = 0;             ///< Deliveries that failed, since the last retry.
  int deaths = 0;               ///< Of them, those whose process died.
  std::string first_error;      ///< Its class, as `error_class` gives it.
  std::string first_failed_at;  ///< Since the row is there: a retry does not change it.
  std::string last_error;
  std::string last_failed_at;
  std::chrono::seconds age{0};         ///< Since the last failure.
  std::string error_text;              ///< Empty unless `keep_error_text` was set.
  std::optional<std::string> payload;  ///< Only where it was asked for, and is there.
};

/// Which failed messages are meant. What is empty or zero does not choose.
struct FailedFilter {
  std::string consumer = {};
  std::string business_key = {};
  std::optional<FailedState> state = {};  ///< None: all but the discarded.
  std::string error_class = {};           ///< Of the last failure, as `error_class` gives it.
  std::chrono::seconds older_than{0};     ///< Since the last failure.
  std::size_t limit = 1000;               ///< The most that are listed or changed in one call; 0: none is.
  bool payloads = false;                  ///< `list_failed` fills `FailedMessage::payload`.
};

/// The messages that failed and are not consumed by now, the latest failure first. With `consumer` and
/// `business_key` also one that was parked or torn although no failure was counted (zero `attempts`): by hand,
/// or by a txinbox that did not count yet.
///
/// Transaction: none may be open.
/// Limits:      reads `txinbox_failed_message`, of which purge_failed keeps the size.
/// Errors:      `Error` transaction_open, a schema code; a database error as it was.
std::vector<FailedMessage> list_failed(soci::session& session, const FailedFilter& filter = {});

/// Lets the next delivery of these messages run: those that are parked or failing, whose count begins
/// anew. Not those that are torn, where a part of the effect is there.
///
/// Transaction: one for each message; none may be open. What was changed stays when a later one fails.
/// Blocking:    waits for a delivery that holds a key.
/// Errors:      as list_failed.
/// @return how many it was.
std::size_t retry_failed(soci::session& session, const FailedFilter& filter);

/// Gives these messages up for good: those that are parked, torn or failing. Their state stays, so that
/// later deliveries get `discarded` and are acknowledged; no purge removes it, `forget` does.
///
/// Transaction, blocking, errors: as retry_failed.
/// @return how many it was.
std::size_t discard_failed(soci::session& session, const FailedFilter& filter);

TXINBOX_NAMESPACE_END
}  // namespace txinbox
