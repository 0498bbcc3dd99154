#pragma once

#include <string_view>

#include <txinbox/message.hpp>
#include <txinbox/version.hpp>

#include "backend/session.hpp"
#include "types/row_state.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Statements on the consumed-message table. LeaseTable has the statements of the lease protocol, and
/// `backend::Session` inserts the claims.
class ConsumedMessageTable {
 public:
  explicit ConsumedMessageTable(backend::Session& session, backend::TransactionUse use = backend::TransactionUse::own)
      : session_(session), use_(use) {}

  /// Whether the claim that was inserted with this token is there, as far as this session sees. It waits for no lock.
  bool has_claim(std::string_view consumer, std::string_view business_key, const Token&) const;

  /// Deletes that claim. Returns false if it is not there.
  bool delete_claim(std::string_view consumer, std::string_view business_key, const Token&) const;

  /// Marks that claim torn. Returns false if it is not there.
  bool mark_torn(std::string_view consumer, std::string_view business_key, const Token&) const;

  /// Inserts a torn row with this token. Returns false if the key has a row, or if somebody holds the key.
  bool insert_torn(std::string_view consumer, std::string_view business_key, const Token&) const;

  /// Returns the UPDATE after which this claim is new, however long its handler has run.
  std::string restart_clock_sql(std::string_view consumer, std::string_view business_key, const Token&) const;

  /// Inserts a parked row. Returns false if the key has a row, or if somebody holds the key.
  bool park(std::string_view consumer, const Message&) const;

  /// Deletes a parked row. Returns false if it is not there.
  bool delete_parked(std::string_view consumer, std::string_view business_key) const;

  /// Inserts a discarded row. Returns false if the key has a row, or if somebody holds the key.
  bool insert_discarded(std::string_view consumer, std::string_view business_key) const;

  /// Marks a parked or torn row discarded, or the row of a lease that has ended. Returns false if it is not there.
  bool discard(std::string_view consumer, std::string_view business_key) const;

  bool has_rows_of(std::string_view consumer) const;

 private:
  bool insert(std::string_view consumer, std::string_view business_key, RowState, const Token&) const;
  std::string table() const;
  std::string is_claim(std::string_view consumer, std::string_view business_key, const Token&) const;

  backend::Session& session_;
  backend::TransactionUse use_;
};

/// Deletes the key's row in any state. Returns false if it is not there. The session needs no schema: the dialect names
/// it.
bool delete_message(backend::Session&, const backend::Dialect&, std::string_view consumer,
                    std::string_view business_key, backend::TransactionUse);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
