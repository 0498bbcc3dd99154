#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <vector>

#include <txinbox/outbox_relay.hpp>

#include "outbox/part_leases.hpp"
#include "outbox/relay_machine.hpp"
#include "pool/session_provider.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Does what a `RelayMachine` says, with the database, the publisher and the clock.
class RelayRun {
 public:
  using Clock = std::chrono::steady_clock;

  /// Waits until this time, until `OutboxRelay::wake`, or until the relay has to stop. Returns whether `wake` was
  /// called.
  using WaitUntil = std::function<bool(Clock::time_point)>;

  /// The arguments must outlive this object.
  RelayRun(SessionProvider& source, const Publisher& publisher, const RelayOptions& options);

  /// Runs until it has to stop. Then it gives the parts back.
  void run(const std::stop_token& stop, const WaitUntil& wait) noexcept;

 private:
  void perform(const relay_job::Refresh&, const std::stop_token&);
  void perform(const relay_job::Renew&, const std::stop_token&);
  void perform(const relay_job::List&, const std::stop_token&);
  void perform(const relay_job::ReadWriters&, const std::stop_token&);
  void perform(const relay_job::Read&, const std::stop_token&);
  void perform(const relay_job::Publish&, const std::stop_token&);
  void perform(const relay_job::Remove&, const std::stop_token&);
  void perform(const relay_job::Count&, const std::stop_token&);
  void perform(const relay_job::Wait&, const std::stop_token&) {}
  void perform(const relay_job::End&, const std::stop_token&) {}
  void notify(const RelayEvent&) const noexcept;

  SessionProvider& source_;
  const Publisher& publisher_;
  const RelayOptions& options_;
  const std::function<void(const RelayEvent&)> notify_;
  PartLeases leases_;
  RelayMachine machine_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
