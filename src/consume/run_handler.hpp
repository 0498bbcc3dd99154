#pragma once

#include <exception>
#include <optional>
#include <span>
#include <string>

#include <txinbox/delivery.hpp>
#include <txinbox/handler.hpp>
#include <txinbox/version.hpp>

#include "consume/consumer_policy.hpp"
#include "pool/session_provider.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The exception of `Delivery::refuse`. It is no `std::exception`, so that a handler's own catch clauses do not get it.
struct Refused {
  std::string result;
};

/// Returns the result that the handler gave with its refusal; none for another error.
inline std::optional<std::string> refused_by(const std::exception_ptr& error) {
  if (!error) return std::nullopt;
  try {
    std::rethrow_exception(error);
  } catch (const Refused& refused) {
    return refused.result;
  } catch (...) {
    return std::nullopt;
  }
}

/// Runs the handler on the session, between the begin and the end of its scope.
///
/// If the handler refuses the message, it throws `Refused`.
///
/// An exception of a kind that txinbox does not know is thrown on as a `HandlerError`, if the handler's last statement
/// on the session had a transient error or one of the environment. So a deadlock is run again, whatever library the
/// handler uses.
void run_handler(const ConsumerPolicy&, const Handler&, SessionHandle&, Delivery&);

/// Does the same for all deliveries of a part. `batch` has the messages of the call, for the scope.
void run_handler(const ConsumerPolicy&, const BatchHandler&, SessionHandle&, std::span<Delivery>,
                 std::span<const Message> batch);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
