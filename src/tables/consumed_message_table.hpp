#pragma once

#include <string_view>

#include <txinbox/message.hpp>
#include <txinbox/version.hpp>

#include "backend/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Statements on the consumed-message table, each in a transaction of its own. LeaseTable has those of the lease
/// protocol; a claim is inserted by `backend::Session`.
class ConsumedMessageTable {
 public:
  explicit ConsumedMessageTable(backend::Session& session) : session_(session) {}

  /// Removes the claim that was inserted with this token. False: it is not there.
  bool delete_claim(std::string_view consumer, std::string_view business_key, const Token&) const;

  /// Marks that claim torn. False: it is not there.
  bool mark_torn(std::string_view consumer, std::string_view business_key, const Token&) const;

  /// Inserts a parked row. False: the key has a row, or somebody holds it.
  bool park(std::string_view consumer, const Message&) const;

  bool has_rows_of(std::string_view consumer) const;

 private:
  std::string table() const;
  std::string is_claim(std::string_view consumer, std::string_view business_key, const Token&) const;

  backend::Session& session_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
