#pragma once

#include <chrono>
#include <cstddef>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include <txinbox/version.hpp>

#include "base/token.hpp"
#include "pool/session_provider.hpp"
#include "tables/outbox_part_table.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The parts that one relay publishes. The relay takes its share of all parts: the number of parts divided by the
/// number of relays.
class PartLeases {
 public:
  using Clock = std::chrono::steady_clock;

  PartLeases(SessionProvider& source, std::chrono::milliseconds lease);

  /// Extends the lease, takes free parts, and gives back the parts beyond the share. Returns whether it took parts.
  bool refresh(const std::stop_token& stop);

  /// Extends the lease and changes no part. Returns false if the lease is lost. Then this relay has no parts.
  bool renew(const std::stop_token& stop);

  /// The end of the lease, counted from before the last extension was sent.
  Clock::time_point expires() const noexcept { return expires_; }

  const std::set<int>& parts() const noexcept { return parts_; }

  /// Gives the parts back, so that other relays can take them at once.
  void leave() noexcept;

 private:
  void enter(const OutboxPartTable& table);
  void give_up() noexcept;
  bool balance(const OutboxPartTable& table);

  SessionProvider& source_;
  const std::chrono::milliseconds lease_;
  const std::string name_;
  Token token_ = Token::random();
  bool entered_ = false;
  Clock::time_point expires_{};
  std::set<int> parts_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
