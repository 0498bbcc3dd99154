#include "base/reentrancy_check.hpp"

#include <algorithm>

#include <txinbox/error.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

thread_local std::vector<const void*> ReentrancyCheck::active;

void ReentrancyCheck::refuse_nested(const void* source) {
  if (std::find(active.begin(), active.end(), source) == active.end()) return;
  throw Error(ErrorCode::nested_consume,
              "consume was called inside a handler on the same pool or session; do the inner work with the "
              "handler's own session, or consume the inner message afterwards");
}

ReentrancyCheck::ReentrancyCheck(const void* source) {
  refuse_nested(source);
  active.push_back(source);
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
