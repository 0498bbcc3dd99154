#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <txinbox/message.hpp>
#include <txinbox/version.hpp>

#include "backend/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// A claim that messages can be added for: they are added to the outbox in its transaction.
class OutboxClaim {
 public:
  /// `key_recurs`: whether the key can be claimed again later, because the message has a `valid_for`.
  OutboxClaim(backend::Session& session, std::string_view consumer, std::string_view business_key,
              bool key_recurs) noexcept
      : session_(session), consumer_(consumer), business_key_(business_key), key_recurs_(key_recurs) {}

  backend::Session& session() const noexcept { return session_; }

  /// Returns the next derived message id. Empty if the key can have several messages (`valid_for`).
  ///
  /// Errors: as `outbox_database_id`.
  std::string next_id();

 private:
  backend::Session& session_;
  const std::string_view consumer_;
  const std::string_view business_key_;
  const bool key_recurs_;
  std::uint64_t added_ = 0;
};

/// While this object exists, `Outbox::add` on this thread and on the session's connection adds messages for this claim.
///
/// `Outbox::add` takes a connection and no delivery. It finds the claim by the connection.
class OutboxScope {
 public:
  /// The session and the names must outlive the scope. Each run of a handler makes a scope, so it copies nothing.
  OutboxScope(backend::Session& session, std::string_view consumer, std::string_view business_key, bool key_recurs);
  OutboxScope(backend::Session& session, std::string_view consumer, const Message& message)
      : OutboxScope(session, consumer, message.business_key, message.valid_for.count() > 0) {}
  OutboxScope(const OutboxScope&) = delete;
  OutboxScope& operator=(const OutboxScope&) = delete;
  ~OutboxScope() = default;

  /// Returns the latest claim of this thread on the connection with this handle; null if there is none.
  static std::shared_ptr<OutboxClaim> on(const void* handle) noexcept;

 private:
  const std::shared_ptr<OutboxClaim> claim_;
};

/// Returns a random message id, a UUID of version 4.
std::string random_message_id();

/// Returns the id of this database, 32 hexadecimal digits. The first call on a connection reads it, also in an open
/// transaction.
///
/// Errors: `Error` schema_mismatch if the table has no row; a database error as it was.
const std::string& outbox_database_id(backend::Session& session);

/// Returns the id of a message that a handler adds, a UUID of version 8. `number` counts the messages of the run.
std::string derived_message_id(std::string_view database, std::string_view consumer, std::string_view business_key,
                               std::uint64_t number);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
