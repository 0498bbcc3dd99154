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

/// Who holds, or asks for, a lease: fresh for each `consume`, so that nothing that comes late from one call
/// can be taken for another's.
struct LeaseOwner {
  Token token = Token::random();
  std::string_view name;  ///< For operators: the host and the process.
};

/// The lease protocol's statements about one message. Each is a transaction of its own, and conditional: it
/// says whether it found what it was to change.
class LeaseTable {
 public:
  LeaseTable(backend::Session& session, std::string_view consumer, const Message& message)
      : session_(session), consumer_(consumer), message_(message) {}

  std::optional<backend::ClaimedRow> find() const;

  /// Makes the row. Returns the lease's fence; none: there is a row.
  std::optional<std::int64_t> insert(const LeaseOwner&, std::string_view content_hash,
                                     std::chrono::milliseconds lease) const;

  /// Takes over a lease that has run out, with a greater fence, which it returns. `seen` is compared: it may be
  /// another's by now.
  std::optional<std::int64_t> take_over(const LeaseOwner&, std::string_view content_hash,
                                        std::chrono::milliseconds lease, const backend::ClaimedRow& seen) const;

  // --- Of one's own lease

  bool renew(const LeaseOwner&, std::int64_t fence, std::chrono::milliseconds lease) const;
  bool complete(const LeaseOwner&, std::int64_t fence, const std::optional<std::string>& result) const;

  /// Lets it run out at once. The row stays, and with it its fence.
  bool release(const LeaseOwner&, std::int64_t fence) const;

  bool park(const LeaseOwner&, std::int64_t fence) const;

 private:
  std::string table() const;
  std::string is_key() const;
  bool change_own(const LeaseOwner&, std::int64_t fence, const std::string& assignments) const;

  backend::Session& session_;
  std::string_view consumer_;
  const Message& message_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
