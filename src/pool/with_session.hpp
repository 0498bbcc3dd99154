#pragma once

#include <exception>
#include <stop_token>
#include <type_traits>

#include <txinbox/version.hpp>

#include "backend/error_classification.hpp"
#include "pool/session_provider.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Runs `step(backend::Session&)`, whose statements are transactions of their own, on a borrowed session,
/// which goes back clean; after an error that makes it useless, it is closed. `stop` ends the wait for it.
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
    if (is_fatal_to_session(std::current_exception())) session.discard();
    throw;
  }
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
