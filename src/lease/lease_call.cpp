#include "lease/lease_call.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

// LeaseOptions repeats these members: see there. A new one must be copied here.
TxConsumerOptions common_options(const LeaseOptions& options) {
  return {.retry = options.retry,
          .stop = options.stop,
          .listeners = options.listeners,
          .max_attempts = options.max_attempts,
          .is_transient = options.is_transient,
          .count_starts = options.count_starts,
          .keep_error_text = options.keep_error_text,
          .max_result = options.max_result,
          .max_conflicts = options.max_conflicts};
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
