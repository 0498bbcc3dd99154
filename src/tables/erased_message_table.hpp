#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/message.hpp>
#include <txinbox/result.hpp>
#include <txinbox/version.hpp>

#include "backend/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// An erased message, as its row says.
struct ErasedMessage {
  std::string key;                ///< See `erased_key`.
  bool is_consumed;               ///< Otherwise it is discarded.
  std::chrono::milliseconds age;  ///< Since it was consumed or discarded.
};

/// The statements of `erase` for one consumer. The row of an erased message is a row of the consumed-message table
/// whose key is its `erased_key`.
class ErasedMessageTable {
 public:
  ErasedMessageTable(backend::Session& session, std::string_view consumer) : session_(session), consumer_(consumer) {}

  /// Returns the erased messages. No transaction may be open.
  std::vector<ErasedMessage> read() const;

  // --- The functions below run in the open transaction.

  /// Finds the row of an erased message for a transaction that has just claimed its key. Returns none if the key was
  /// not erased, or if `valid_for` of the message frees it. `past_snapshot`: reads the latest commit, not the
  /// transaction's snapshot, and locks the row's place in the table on MariaDB and MySQL.
  std::optional<Claim> find(const Message&, bool past_snapshot) const;

  /// Adds the row with the erased key. The row of the key itself stays, without what it holds of the message, and with
  /// the same new token. A message that is not consumed becomes discarded. Returns false, and has changed nothing, if
  /// the message is not known, or if it is running or torn. `ignores_markers`: no process runs a message, so a marker
  /// is that of a crash.
  bool add(std::string_view business_key, bool ignores_markers) const;

  /// Removes the row of the key itself. Returns false if it is not there, or if a delivery has claimed the key since
  /// `add`: the key had `Message::valid_for`.
  bool remove(std::string_view business_key) const;

  /// Removes the failure of the message and its conflicts. Returns whether there were any.
  bool remove_traces(std::string_view business_key) const;

  /// Replaces the key in the audit. Returns whether it was there.
  bool replace_in_audit(std::string_view business_key) const;

 private:
  bool blank(std::string_view business_key) const;

  backend::Session& session_;
  std::string_view consumer_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
