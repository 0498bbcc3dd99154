#include "torture/counters.hpp"

#include <string>

#include <txinbox/error.hpp>
#include <txinbox/result.hpp>

namespace txinbox::torture {

void count(const std::exception_ptr& error, Counters& met) {
  const std::string kind = error_class(error);
  if (kind == to_string(ErrorCode::transaction_lost)) {
    ++met.transactions_lost;
  } else if (kind == "deadlock") {
    ++met.deadlocks;
  } else if (kind == "lock_timeout") {
    ++met.lock_timeouts;
  } else if (kind == "connection_lost") {
    ++met.connections_lost;
  }
}

}  // namespace txinbox::torture
