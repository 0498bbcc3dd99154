#pragma once

#include <span>

#include <txinbox/delivery.hpp>
#include <txinbox/handler.hpp>
#include <txinbox/version.hpp>

#include "consume/consumer_policy.hpp"
#include "pool/session_provider.hpp"
#include "types/refused.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

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
