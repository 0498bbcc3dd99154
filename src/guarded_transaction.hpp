#pragma once

#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <txinbox/message.hpp>

#include "backend/backend.hpp"
#include "token.hpp"

namespace txinbox::inline TXINBOX_ABI::detail {

/// A claim that this process inserted, kept by value so that it can outlive its transaction.
struct OwnClaim {
  std::string consumer;
  std::string business_key;
  Token token;

  backend::ClaimRow row() const { return {consumer, business_key, {}, &token}; }
};

/// Marks those of the claims that are in the table as torn. Returns how many were.
int mark_torn(backend::Session&, const std::vector<OwnClaim>&);

/// Throws `Error` transaction_lost, with what is to be done.
[[noreturn]] void throw_transaction_lost(bool torn);

/// Whether the error is that one.
bool is_transaction_lost(const std::exception_ptr&) noexcept;

/// A transaction that proves that it is still itself before it commits.
///
/// What its end leaves to the owner is told by `unproven`: claims that the handler may have committed,
/// because the guard was gone or the connection was.
class GuardedTransaction {
 public:
  explicit GuardedTransaction(backend::Session& session) : session_(session) {}
  ~GuardedTransaction() { roll_back(); }
  GuardedTransaction(const GuardedTransaction&) = delete;
  GuardedTransaction& operator=(const GuardedTransaction&) = delete;

  const Token& token() const noexcept { return token_; }

  void begin();

  /// Inserts a claim; begins first, in the same round trip where possible, if `begin` was not called.
  backend::ExistingRow* claim(std::string_view consumer, const Message&);

  /// Errors: `Error` transaction_lost, after the rollback; a database error as it was.
  void commit(const std::optional<std::string>& result);

  /// Does nothing when the transaction has ended.
  void roll_back() noexcept;

  /// Whether COMMIT was sent without a clear answer: it may have taken effect.
  bool commit_in_doubt() const noexcept { return state_ == State::in_doubt; }

  /// Whether the session came through in a usable state.
  bool session_usable() const noexcept { return session_usable_; }

  /// Claims to mark as torn if they are in the table.
  std::vector<OwnClaim> take_unproven() noexcept { return std::exchange(unproven_, {}); }

 private:
  enum class State { not_begun, open, committed, rolled_back, in_doubt };

  backend::Session& session_;
  Token token_ = Token::random();
  State state_ = State::not_begun;
  bool session_usable_ = true;
  backend::ExistingRow existing_;
  std::vector<OwnClaim> claims_;
  std::vector<OwnClaim> unproven_;
};

}  // namespace txinbox::inline TXINBOX_ABI::detail
