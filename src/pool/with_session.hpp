#pragma once

#include <exception>
#include <stop_token>
#include <type_traits>

#include <txinbox/version.hpp>

#include "backend/failure.hpp"
#include "pool/session_provider.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Runs `step(backend::Session&)` on a borrowed session, and returns its result.
///
/// Each statement of the step is a transaction of its own, so the session need not be reset afterwards. After an error
/// that makes the session useless, the pool closes it. `stop` ends the wait for a connection.
template <class Step>
auto with_session(SessionProvider& source, const std::stop_token& stop, const Step& step) {
  SessionHandle session = source.borrow(stop);
  try {
    if constexpr (std::is_void_v<decltype(step(session.backend()))>) {
      step(session.backend());
      session.mark_clean();
    } else {
      auto result = step(session.backend());
      session.mark_clean();
      return result;
    }
  } catch (...) {
    if (Failure::current().is_fatal_to_session()) session.discard();
    throw;
  }
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
