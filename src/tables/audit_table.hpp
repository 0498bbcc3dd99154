#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>

#include <txinbox/operator_action.hpp>

#include "backend/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Throws if the table cannot keep the actor or the reason.
///
/// Errors: `Error` invalid_argument.
void check_operator_action(const OperatorAction&);

/// An operator's change, for its row of the audit table.
struct AuditEntry {
  const std::optional<OperatorAction>& by;  ///< None: no row is written.
  std::string_view action;                  ///< A short name in ASCII, such as "pause".
  std::string_view consumer = {};           ///< Empty: no consumer.
  std::string_view business_key = {};       ///< Empty: no key.
};

/// Writes an entry to the audit table. `messages`: how many rows the change has changed.
void add_audit_row(backend::Session&, const AuditEntry&, std::size_t messages, backend::TransactionUse);

/// Runs the change of one row and writes its entry to the audit table, in one transaction. No transaction may be open.
/// `change` runs statements in the open transaction, and returns whether it has changed the row. If it has not, nothing
/// is written.
///
/// Errors: what `change` throws, after the rollback; a database error as it was.
///
/// @return what `change` has returned.
bool change_with_audit(backend::Session&, const AuditEntry&, const std::function<bool()>& change);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
