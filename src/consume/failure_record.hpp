#pragma once

#include <exception>
#include <string>
#include <string_view>

#include <txinbox/message.hpp>
#include <txinbox/version.hpp>

#include "backend/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Whether this error says that the handler cannot do with the message, rather than that something around
/// it is out of order: neither a transient error, nor one of the environment, nor a stop, nor a set-up that must
/// be mended.
bool is_failure(const std::exception_ptr& error) noexcept;

/// Whether the handler has asked for its message to be parked at once.
bool is_rejected(const std::exception_ptr& error) noexcept;

/// Whether the worker was taken over, for which the message is not to blame.
bool is_lease_lost(const std::exception_ptr& error) noexcept;

/// Counts and parks the messages of one consumer that fail. Each call is a transaction of its own.
class FailureRecord {
 public:
  FailureRecord(backend::Session& session, std::string_view consumer) : session_(session), consumer_(consumer) {}

  /// Counts a delivery that failed. Returns how many have, since the last `retry`.
  int count(const Message&, const std::exception_ptr& error, bool keep_error_text) const;

  /// Counts one whose process died in it.
  int count_death(const Message&) const;

  /// Parks the message, whose key nobody holds. False: somebody does, or has consumed it.
  bool park(const Message&) const;

 private:
  backend::Session& session_;
  std::string_view consumer_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
