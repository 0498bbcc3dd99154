#pragma once

#include <map>
#include <string>

#include <txinbox/consumer_options.hpp>
#include <txinbox/message.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

struct OutgoingMessage;

namespace detail {

/// The handler that runs on this thread, while this object exists. `Outbox::add` takes a connection and no delivery, so
/// it finds the handler by the thread.
class RunningHandler {
 public:
  /// `message` is null if the handler has several messages: then nobody knows to which of them an outgoing message
  /// belongs. Both arguments must outlive this object.
  RunningHandler(const ConsumerOptions& options, const Message* message) noexcept;
  ~RunningHandler();
  RunningHandler(const RunningHandler&) = delete;
  RunningHandler& operator=(const RunningHandler&) = delete;

  /// Returns the handler of this thread. Null if none runs.
  static const RunningHandler* current() noexcept;

  /// Whether `with_context` can differ from the message's own headers.
  bool forwards() const noexcept {
    return options_.forward_trace_context && message_ != nullptr && message_->incoming != nullptr;
  }

  bool has_listeners() const noexcept { return !options_.listeners.empty(); }

  using Headers = std::map<std::string, std::string>;

  /// Returns the headers of an outgoing message with the trace context of the handler's message.
  Headers with_context(Headers own) const;

  /// Returns `with_context`, and what the listeners change in it. `own` are the headers of the message.
  Headers with_changes(const OutgoingMessage&, Headers own) const;

 private:
  const ConsumerOptions& options_;
  const Message* const message_;
  const RunningHandler* const outer_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
