#pragma once

/// @file
/// The events that an observer gets.

#include <chrono>
#include <cstddef>
#include <exception>
#include <optional>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// The type of an event of a delivery or a purge. Later versions may add types.
enum class EventType {
  consumed,          ///< The transaction committed.
  already_consumed,  ///< The delivery is a duplicate. `age` is the age of the original.
  conflict,          ///< The key came with other content. The handler did not run.
  in_progress,       ///< Another worker has a lease on the key.
  parked,            ///< The message is parked or torn, because of this delivery (then with `error`) or an earlier one.
  retry,             ///< A transient error occurred. The transaction runs again after `backoff`.
  torn,              ///< The handler itself committed the transaction that txinbox opened. The claim is marked torn, so
                     ///< that later deliveries do not count as duplicates.
  failed,     ///< A delivery, a whole batch or a purge failed with `error`. If the failure parks the message, the
              ///< event is `parked` instead.
  discarded,  ///< An operator has discarded the message. The handler did not run.
  postponed,  ///< The handler asked for a later delivery.
  lease_taken_over,  ///< The lease of another worker had expired, and this delivery took the key over.
  purged,            ///< A batch of `rows` old rows was removed.
};

/// The name of the enumerator, such as "consumed".
std::string_view to_string(EventType) noexcept;

/// One thing that happened. The observer is called after it happened. The event is valid only during the call.
struct Event {
  EventType type;                        ///< It says which of the other members have a value.
  std::string_view consumer = {};        ///< The consumer's name; empty for a purge of all consumers.
  std::string_view business_key = {};    ///< It can be personal data: be careful what you log. Empty if the event
                                         ///< concerns a whole batch or a purge.
  std::string_view message_id = {};      ///< The broker's id; empty if none was given. Empty also for torn and
                                         ///< lease_taken_over in a batch.
  int attempt = 1;                       ///< The number of the run within this call; 1 is the first.
  std::chrono::nanoseconds duration{0};  ///< Since `consume` or `consume_batch` was called. For purged: the time of the
                                         ///< batch.
  std::exception_ptr error = {};  ///< For retry and failed; for parked if this delivery has failed; for postponed only
                                  ///< in a batch or under a lease. The text of a SOCI error holds bound values.
  std::chrono::milliseconds backoff{0};  ///< For retry: the wait before the next run.
  std::string_view error_class = {};  ///< The result of `txinbox::error_class` for `error`; empty if there is no error.
  std::optional<std::chrono::milliseconds> age = {};  ///< For already_consumed: the time since the original was
                                                      ///< consumed. None if the cache of recent keys answered, or if
                                                      ///< the original is in the same batch.
  std::size_t rows = 0;                               ///< For purged: how many rows were removed.
};

TXINBOX_NAMESPACE_END
}  // namespace txinbox
