#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <txinbox/message.hpp>
#include <txinbox/version.hpp>

#include "backend/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The worker that holds a lease, or asks for it. The token is new for each `consume`, so a late statement of one call
/// cannot act for another call.
struct LeaseOwner {
  Token token = Token::random();
  std::string_view name;  ///< For operators: the host and the process.
};

/// The statements of the lease protocol for one message. Each is a transaction of its own. Each changes the row only if
/// a condition is true, and returns whether it changed the row.
class LeaseTable {
 public:
  LeaseTable(backend::Session& session, std::string_view consumer, const Message& message)
      : session_(session), consumer_(consumer), message_(message) {}

  std::optional<backend::ClaimedRow> find() const;

  /// Inserts the row. Returns the fence of the lease; none if the key has a row.
  std::optional<std::int64_t> insert(const LeaseOwner&, std::string_view content_hash,
                                     std::chrono::milliseconds lease) const;

  /// Takes over an expired lease, or a row that was consumed too long ago, with a greater fence, and returns that
  /// fence. Returns none if the row differs from `seen`: another worker may have changed it.
  std::optional<std::int64_t> take_over(const LeaseOwner&, std::string_view content_hash,
                                        std::chrono::milliseconds lease, const backend::ClaimedRow& seen) const;

  // --- Statements on our own lease

  bool renew(const LeaseOwner&, std::int64_t fence, std::chrono::milliseconds lease) const;
  bool complete(const LeaseOwner&, std::int64_t fence, const std::optional<std::string>& result) const;

  /// Ends the lease at once. The row and its fence stay.
  bool release(const LeaseOwner&, std::int64_t fence) const;

  bool park(const LeaseOwner&, std::int64_t fence) const;
  bool discard(const LeaseOwner&, std::int64_t fence) const;
  bool remove(const LeaseOwner&, std::int64_t fence) const;

 private:
  /// `first` is the value before those of the condition, if the statement has one.
  bool change_own(const backend::KeptStatement&, const LeaseOwner&, std::int64_t fence,
                  std::optional<backend::Parameter> first = {}) const;

  backend::Session& session_;
  std::string_view consumer_;
  const Message& message_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
