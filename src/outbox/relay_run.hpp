#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include <txinbox/outbox_relay.hpp>

#include "outbox/blocked_keys.hpp"
#include "outbox/part_leases.hpp"
#include "outbox/read_position.hpp"
#include "pool/session_provider.hpp"
#include "tables/outbox_message_table.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The work of a relay, one batch after the other.
class RelayRun {
 public:
  using Clock = std::chrono::steady_clock;

  /// The arguments must outlive this object.
  RelayRun(SessionProvider& source, const Publisher& publisher, const RelayOptions& options);

  /// What a step found.
  enum class Found {
    nothing,  ///< The step found no message that this relay may publish now.
    some,     ///< The step tried to publish messages, and saw no others.
    more,     ///< The step tried to publish messages, and there may be more to publish at once.
  };

  /// Takes parts if that is due. Then reads one batch and publishes it. After an exception, the messages whose rows
  /// were not removed are published again.
  Found step(const std::stop_token& stop);

  /// Returns when the next step has something to do if no message is added before. It is at most `latest`.
  Clock::time_point next(Clock::time_point latest) const;

  /// Gives the parts back.
  void leave() noexcept { leases_.leave(); }

  void notify(const RelayEvent&) const noexcept;

 private:
  struct Failure {
    OutboxRowKey row;
    std::string error;
    bool park;
  };

  /// Looks for rows that were committed after the position had passed them. Their keys are due at once. Returns whether
  /// there may be more.
  bool sweep(Clock::time_point now, const std::stop_token& stop);

  /// Publishes messages whose wait is over, with the later ones of their keys. Returns whether there were some.
  bool publish_due(Clock::time_point now, const std::stop_token& stop);

  std::vector<OutboxRow> read(const std::vector<OutboxQuery>& queries, const std::stop_token& stop);
  bool publish(std::vector<OutboxRow> rows, const std::stop_token& stop);
  bool publish_round(std::vector<OutboxRow> round, const std::stop_token& stop);
  bool may_publish(const std::stop_token& stop);
  void take_result(const OutboxRow& row, const PublishResult& result);
  void fail(const OutboxRow& row, const PublishResult& result);
  void wait(const OutboxRow& row, std::chrono::milliseconds least, std::chrono::milliseconds wanted);

  /// Writes to the table which messages were confirmed and which have failed.
  void settle();

  SessionProvider& source_;
  const Publisher& publisher_;
  const RelayOptions& options_;
  PartLeases leases_;
  ReadPosition position_;
  BlockedKeys blocked_;
  std::vector<OutboxRowKey> confirmed_;
  std::vector<Failure> failures_;
  Clock::time_point settled_at_{};
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
