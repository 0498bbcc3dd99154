#pragma once

#include <chrono>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <txinbox/version.hpp>

#include "backend/session.hpp"
#include "base/token.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The statements with which relays share the parts of the outbox. Each is a transaction of its own.
///
/// A relay first inserts its token with a lease, and then takes parts. A part belongs to the relay whose token it has,
/// as long as that relay has a row. Any relay may remove the row of a relay whose lease has expired. A removed token
/// never comes back. So a relay that has found a token removed may take the parts of that token.
class OutboxPartTable {
 public:
  explicit OutboxPartTable(backend::Session& session);

  // --- Relays

  void enter(const Token& relay, std::string_view name, std::chrono::milliseconds lease) const;

  /// Extends the lease. Returns false if it has expired.
  bool renew(const Token& relay, std::chrono::milliseconds lease) const;

  void leave(const Token& relay) const;
  void remove_expired() const;

  /// Returns the tokens of all relays, as hexadecimal digits in lower case.
  std::set<std::string> relays() const;

  // --- Parts

  /// Returns each part with the token of its owner, as hexadecimal digits in lower case. The token is empty if the part
  /// has no owner.
  std::vector<std::pair<int, std::string>> parts() const;

  /// Takes each of these parts that has no owner, or whose owner is one of `former_owners`.
  void take(const Token& relay, const std::vector<int>& parts, const std::set<std::string>& former_owners) const;

  void give_back(const Token& relay, const std::vector<int>& parts) const;

 private:
  backend::Session& session_;
  std::string relays_, parts_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
