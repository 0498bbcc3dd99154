#pragma once

#include <vector>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Refuses a `consume` inside a handler of the same source. It would wait for the connection or the key that its own
/// caller holds.
class ReentrancyCheck {
 public:
  /// Errors: `Error` nested_consume.
  static void refuse_nested(const void* source);

  /// Marks this thread as inside a handler of `source`, until the object is destroyed.
  ///
  /// Errors: `Error` nested_consume.
  explicit ReentrancyCheck(const void* source);
  ~ReentrancyCheck() { active.pop_back(); }
  ReentrancyCheck(const ReentrancyCheck&) = delete;
  ReentrancyCheck& operator=(const ReentrancyCheck&) = delete;

 private:
  static thread_local std::vector<const void*> active;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
