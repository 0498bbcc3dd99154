#include "telemetry/running_handler.hpp"

#include <utility>

#include "telemetry/listeners.hpp"
#include "telemetry/trace_context.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

thread_local const RunningHandler* running = nullptr;

}  // namespace

RunningHandler::RunningHandler(const ConsumerOptions& options, const Message* message) noexcept
    : options_(options), message_(message), outer_(running) {
  running = this;
}

RunningHandler::~RunningHandler() { running = outer_; }

const RunningHandler* RunningHandler::current() noexcept { return running; }

RunningHandler::Headers RunningHandler::with_context(Headers own) const {
  if (forwards()) copy_trace_context(*message_->incoming, own);
  return own;
}

RunningHandler::Headers RunningHandler::with_changes(const OutgoingMessage& message, Headers own) const {
  auto headers = with_context(std::move(own));
  outgoing(options_.listeners, message, headers);
  return headers;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
