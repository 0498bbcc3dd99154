#pragma once

#include <vector>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Refuses a `consume` inside a handler of the same source: it would wait for the connection or the
/// key that its own caller holds.
class ReentrancyCheck {
 public:
  /// Errors: `Error` nested_consume.
  static void refuse_nested(const void* source);

  /// From here to the end of its life, this thread is inside a handler of `source`.
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
