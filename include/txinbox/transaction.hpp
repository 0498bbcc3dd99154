#pragma once

#include <memory>
#include <string_view>

#include <txinbox/claim.hpp>
#include <txinbox/message.hpp>
#include <txinbox/version.hpp>

namespace soci {
class session;
}

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// The guarded transaction, for those who own theirs. `TxConsumer` is built on the same parts.
///
/// A guarded transaction can tell whether it is still the one that was opened: a savepoint with an
/// unguessable name is set when it begins, and released just before COMMIT. A handler that committed,
/// rolled back, began again, swallowed a deadlock or ran DDL that commits has destroyed that
/// savepoint, and the commit is refused. On PostgreSQL the server refuses every other commit of the claim as well.
/// On the others a claim is `torn` until `commit` confirms it.
///
/// It is used once: after `commit` or `rollback` only the destructor is of use.
///
/// Threads: for the session's thread only.
class Transaction {
 public:
  /// Begins a transaction on the caller's session, after a check of the session and of the tables.
  ///
  /// Blocking: four or five short round trips for the check, and the begin. On SQLite it waits for
  ///           the writer, as long as the session's `timeout` allows.
  /// Errors:   `Error` transaction_open when the session is inside a transaction; unsafe_connection,
  ///           unsupported_database or a schema code from the check; a database error as it was. No
  ///           transaction is left open, and no setting is left changed.
  explicit Transaction(soci::session& session);

  /// Rolls back unless committed.
  ~Transaction();

  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  /// Inserts the claim for (consumer, key). What the caller runs on the session afterwards commits
  /// with it or not at all. Several claims in one transaction are allowed, in a fixed order of keys,
  /// or two such transactions can deadlock.
  ///
  /// Blocking: waits for another transaction that holds the same key, up to the session's lock
  ///           time-out.
  /// Errors:   `Error` invalid_key before a statement is sent; unknown_state; transaction_lost when this
  ///           transaction has ended; a database error as it was. After any of them `commit` refuses: what
  ///           would be committed has no claim.
  Claim claim(std::string_view consumer, const Message& message);

  /// Proves that the transaction is still ours, then commits it.
  ///
  /// Errors: `Error` transaction_lost when it is not, or when a claim threw: what could be undone was
  ///         rolled back, and a claim that was committed meanwhile is torn: later deliveries get `parked`.
  ///         A database error as it was; after a lost connection the commit may have taken effect, and
  ///         running the whole transaction again tells.
  void commit();

  /// Rolls back. Does nothing when ended already.
  void rollback() noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

TXINBOX_NAMESPACE_END
}  // namespace txinbox
