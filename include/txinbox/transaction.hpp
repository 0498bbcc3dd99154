#pragma once

/// @file
/// A guarded transaction for callers that make the claim and the commit themselves.

#include <memory>
#include <string_view>

#include <txinbox/connection_ref.hpp>
#include <txinbox/message.hpp>
#include <txinbox/result.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

/// A guarded transaction on the caller's own session. The caller makes the claim, runs SQL, and commits. `TxConsumer`
/// uses the same parts.
///
/// A guarded transaction can verify that it is still the one that was opened. When it begins, it sets a savepoint with
/// a name that nobody can guess. Just before COMMIT it releases this savepoint. If the SQL between them committed,
/// rolled back, began another transaction, ignored a deadlock or ran DDL that commits, the savepoint no longer exists,
/// and `commit` fails. On PostgreSQL the server also refuses every other commit of the claim. On the other databases a
/// claim is `torn` until `commit` confirms it.
///
/// Use it once: after `commit` or `rollback`, only destroy it.
///
/// @threads only the session's thread.
class Transaction {
 public:
  /// Verifies the session and the tables, then begins a transaction on the session.
  ///
  /// @blocking four or five short round trips for the check, and the begin. On SQLite it waits for the writer's lock,
  ///           as long as the session's `timeout` allows.
  /// @errors   after an error no transaction of this object is open, and no setting is changed.
  /// - `Error` transaction_open if the session is inside a transaction.
  /// - `Error` unsafe_connection, unsupported_database or a schema code from the check.
  /// - A database error as it was.
  explicit Transaction(ConnectionRef connection);

  /// Rolls back, unless `commit` has succeeded.
  ~Transaction();

  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  /// Inserts the claim for (consumer, key). The SQL that the caller runs on the session afterwards commits together
  /// with the claim, or not at all. One transaction may make several claims. Make them in a fixed order of keys:
  /// otherwise two such transactions can deadlock.
  ///
  /// Acknowledge a message only after `commit` has returned, also if it is `already_consumed` or `discarded`. Some
  /// servers show a commit before it is on the disk (MariaDB without a binary log); `commit` waits for it.
  ///
  /// A key that `erase` has replaced is `already_consumed` or `discarded`. In a transaction of PostgreSQL at REPEATABLE
  /// READ or SERIALIZABLE, make all claims within 20 seconds after its begin.
  ///
  /// @blocking it waits for another transaction that holds the same key, at most the session's lock time-out.
  /// @errors   after any error `commit` fails, because otherwise the SQL would be committed without its claim.
  /// - `Error` invalid_key before any statement is sent.
  /// - `Error` unknown_state for a row that this library does not understand.
  /// - `Error` transaction_lost if this transaction has ended, or if it cannot see which keys were erased.
  /// - A database error as it was.
  Claim claim(std::string_view consumer, const Message& message);

  /// Verifies that the transaction is still the one that was opened, then commits it.
  ///
  /// @errors
  /// - `Error` transaction_lost if it is not, or if a claim threw. What could be undone was rolled back. A claim that
  ///   was already committed is marked torn: later deliveries get `parked`.
  /// - A database error as it was. After a lost connection the commit may have taken effect. Run the whole transaction
  ///   again to find out: if it has taken effect, its claim returns `already_consumed`.
  void commit();

  /// Rolls back. It does nothing if the transaction has already ended. If a claim has found a consumed row, it also
  /// waits until that row is durable. It cannot report that this has failed: use `commit` before you acknowledge.
  void rollback() noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

TXINBOX_API_END
}  // namespace txinbox
