#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <optional>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// What happened to a delivery. New types may be added.
enum class EventType {
  consumed,          ///< The transaction committed.
  already_consumed,  ///< A duplicate; `age` is that of its original.
  conflict,          ///< The same key came with other content; the handler did not run.
  in_progress,       ///< Another worker holds a lease.
  parked,            ///< The message is parked, by this delivery's failure or by an earlier one, or torn.
  retry,             ///< A transient error; the transaction runs again after `backoff`.
  torn,              ///< The handler committed our transaction itself; its claim is torn, so that no
                     ///< later delivery takes it for consumed.
  failed,            ///< `consume` throws `error`; in a batch, it is the message's result.
  discarded,         ///< An operator has discarded the message; the handler did not run.
  postponed,         ///< The handler asked for a later delivery.
  lease_taken_over,  ///< The lease of another worker has run out, and the key was taken over from it.
  purged,            ///< A batch of old rows was removed: `rows`.
};

std::string_view to_string(EventType) noexcept;

/// One thing that happened, told to the observer after the fact. Valid only during the call.
struct Event {
  EventType type;
  std::string_view consumer = {};
  std::string_view business_key = {};    ///< Can be personal data: take care what you log. Empty for the retry of a
                                         ///< batch.
  std::string_view message_id = {};      ///< The broker's, as it was given; empty where it was not.
  int attempt = 1;                       ///< The run within this call.
  std::chrono::nanoseconds duration{0};  ///< Since `consume` or `consume_batch` was called; for
                                         ///< purged, that of the batch.
  std::exception_ptr error = {};         ///< For retry and failed. SOCI's text holds bound values.
  std::chrono::milliseconds backoff{0};  ///< For retry.
  std::string_view error_class = {};     ///< For retry and failed: what `txinbox::error_class` says of `error`.
  std::optional<std::chrono::milliseconds> age = {};  ///< For already_consumed: since the original was consumed.
                                                      ///< None where a memory of recent keys answered.
  std::size_t rows = 0;                               ///< For purged.
};

TXINBOX_NAMESPACE_END
}  // namespace txinbox
