#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include <txinbox/operator_action.hpp>

#include "backend/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Returns the condition for a pause that has not ended.
std::string is_paused(const backend::Dialect&);

/// Statements on the table of pauses. The changes are in the open transaction.
class PauseTable {
 public:
  explicit PauseTable(backend::Session& session) : session_(session) {}

  /// Inserts or replaces the consumer's row. Without `duration`, the pause has no end.
  void set(std::string_view consumer, const OperatorAction& by, std::optional<std::chrono::seconds> duration) const;

  /// Removes the consumer's pause. Returns whether there was one that had not ended.
  bool remove(std::string_view consumer) const;

  /// Whether the consumer has a pause that has not ended.
  bool contains(std::string_view consumer) const;

 private:
  backend::Session& session_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
