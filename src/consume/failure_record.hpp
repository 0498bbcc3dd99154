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

/// Counts the failures of one consumer's messages, and parks messages. Each statement is a transaction of its own.
class FailureRecord {
 public:
  FailureRecord(backend::Session& session, std::string_view consumer) : session_(session), consumer_(consumer) {}

  /// Counts a failed delivery. Returns the number of failures since the last `retry_failed`.
  int count(const Message&, const std::exception_ptr& error, bool keep_error_text) const;

  /// Counts a delivery during which its process crashed. Returns the same number.
  int count_crash(const Message&) const;

  /// Parks the message. Returns false if its key has a row, or if somebody holds the key.
  bool park(const Message&) const;

 private:
  backend::Session& session_;
  std::string_view consumer_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
