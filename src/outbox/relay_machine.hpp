#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <txinbox/outbox_relay.hpp>

#include "outbox/blocked_keys.hpp"
#include "outbox/due_read.hpp"
#include "outbox/read_position.hpp"
#include "outbox/suspects.hpp"
#include "outbox/watermark_search.hpp"
#include "tables/outbox_message_table.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The next job of a relay. The relay's thread does it, and tells the machine how it ended by the member that the
/// comment names. If the database fails, it calls `database_failed` instead.
namespace relay_job {

using Time = std::chrono::steady_clock::time_point;

/// Extend the lease, and take or give back parts: `refreshed`.
struct Refresh {};
/// Extend the lease: `renewed`.
struct Renew {};
/// List rows without their payloads: `listed`.
struct List {
  OutboxQuery query;
};
/// Read which transactions may have inserted rows and have not ended: `read_writers`.
struct ReadWriters {};
/// Read the rows of all queries: `read`.
struct Read {
  std::vector<OutboxQuery> queries;
};
/// Call the publisher: `published`, or `publisher_threw`.
struct Publish {
  std::span<const OutgoingMessage> messages;
};
/// Remove the rows of confirmed messages: `removed`.
struct Remove {
  std::span<const OutboxRowKey> rows;
};
/// Write failed attempts to the table: `counted`. If the database fails, all of them are written again.
struct Count {
  std::span<const FailedAttempt> failures;
};
/// Wait until this time. If somebody has called `OutboxRelay::wake`: `woken`.
struct Wait {
  Time until;
};
/// Give the parts back and end.
struct End {};

}  // namespace relay_job

using RelayJob =
    std::variant<relay_job::Refresh, relay_job::Renew, relay_job::List, relay_job::ReadWriters, relay_job::Read,
                 relay_job::Publish, relay_job::Remove, relay_job::Count, relay_job::Wait, relay_job::End>;

/// Decides what a relay does. It has no thread, no connection and no clock: it is told what was read, what the
/// publisher has answered, what became of the lease, and what time it is.
///
/// Invariants:
/// - Each row that was read and is not published is in the present rounds, or its key is in `blocked_`. So no row is
///   forgotten when the read position has passed it. If the lease is lost, the position starts over.
/// - A row is published only while the lease is valid, and after all earlier rows of its key that were read.
/// - A row is removed only after the publisher has confirmed it.
///
/// If the publisher throws, nobody knows which message is the reason. So the messages of this call are published again
/// in calls that are half as large, until each call that throws has one message. `Suspects` says whether this message
/// is the reason. Then its attempt is counted.
///
/// @threads one.
class RelayMachine {
 public:
  using Time = relay_job::Time;

  /// `notify` gets the events. The arguments must outlive this object.
  RelayMachine(const RelayOptions& options, const std::function<void(const RelayEvent&)>& notify);

  /// Returns what to do next. What the job refers to stays valid until the machine is told how the job ended.
  RelayJob next(Time now);

  /// From now on, it only settles what was published, and ends.
  void stop() noexcept { stopping_ = true; }
  bool is_stopping() const noexcept { return stopping_; }

  /// The lease ends at `expires`. `took`: parts were taken that the relay did not have.
  void refreshed(std::set<int> parts, bool took, Time expires, Time now);

  /// The lease ends at `expires`. None: the lease is lost, and another relay may have the parts.
  void renewed(std::optional<Time> expires);

  void listed(const std::vector<OutboxRow>& rows, Time now);
  void read_writers(std::optional<OutboxWriters> writers, Time now);

  /// `durable`: the rows cannot vanish if the server crashes. Otherwise they are durable once this relay has committed
  /// something.
  void read(std::vector<OutboxRow> rows, bool durable, Time now);

  void published(const std::vector<PublishResult>& results, Time now);
  void publisher_threw(const std::exception_ptr& error, Time now);
  void removed(Time now);
  void counted() noexcept { failures_.clear(); }
  void database_failed(const std::exception_ptr& error, Time now);
  void woken() noexcept;

 private:
  /// The next step of a cycle. The cycle does each step once, so that none of them waits for ever for another.
  enum class Phase { sweep, watermark, due, latest, rest };

  /// A wait that doubles each time.
  class Doubling {
   public:
    Doubling(std::chrono::milliseconds first, std::chrono::milliseconds longest)
        : first_(first), longest_(std::max(first, longest)), next_(first) {}
    std::chrono::milliseconds take() noexcept;
    void reset() noexcept { next_ = first_; }

   private:
    std::chrono::milliseconds first_, longest_, next_;
  };

  std::optional<RelayJob> next_settlement(Time now);
  std::optional<RelayJob> next_call(Time now);
  std::optional<RelayJob> next_in_cycle(Time now);
  std::optional<RelayJob> next_of_watermark(Time now);
  Time end_of_rest(Time now);

  void take_result(const OutboxRow& row, const PublishResult& result, Time now);
  void fail(const OutboxRow& row, const PublishResult& result, std::size_t most, Time now);
  void wait(const OutboxRow& row, std::chrono::milliseconds least, std::chrono::milliseconds wanted, Time now,
            std::size_t most = BlockedKeys::any_number);

  const RelayOptions& options_;
  const std::function<void(const RelayEvent&)>& notify_;
  bool stopping_ = false;

  std::set<int> parts_;
  Time expires_{};       ///< The end of the lease.
  Time next_refresh_{};  ///< Until then, the parts stay as they are.
  bool must_renew_ = false;

  Phase phase_ = Phase::sweep;
  ReadPosition position_;
  WatermarkSearch watermark_;
  bool lists_for_watermark_ = false;  ///< The rows that were asked for are those of the search for the watermark.
  BlockedKeys blocked_;
  DueRead due_;
  bool found_rows_ = false;  ///< This cycle has read rows.
  bool more_rows_ = false;   ///< There are more rows than this cycle has read.
  std::optional<Time> rest_ends_;
  Doubling idle_;

  std::vector<std::vector<OutboxRow>> rounds_;  ///< The rows read and not tried. No round has two rows of one key.
  std::size_t round_ = 0;                       ///< The next of `rounds_`.
  std::vector<OutgoingMessage> messages_;       ///< Of the present call.
  std::vector<OutboxRow> sent_;                 ///< The rows of `messages_`, without payload and headers.

  std::vector<OutboxRowKey> confirmed_;
  std::vector<FailedAttempt> failures_;
  Time settled_at_{};

  bool succeeded_ = true;  ///< Whether a call has returned since the latest one that threw.
  Time calls_resume_{};    ///< The publisher is not called before.
  Doubling call_backoff_;
  Suspects suspects_;

  Time database_resumes_{};  ///< The database is not asked before.
  Doubling database_backoff_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
