#include <txinbox/tx_consumer.hpp>

#include <exception>
#include <utility>

#include <txinbox/pool.hpp>

#include "backend/connection_access.hpp"
#include "consume/batch_delivery.hpp"
#include "consume/consume_sequentially.hpp"
#include "consume/consumer_context.hpp"
#include "consume/single_delivery.hpp"
#include "pool/pool_state.hpp"
#include "types/handler_error.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

namespace {

/// Calls the handler of a batch with one message.
struct HandlerOfOne {
  const BatchHandler& handler;

  void operator()(const detail::HandlerConnection& connection, Delivery& delivery) const {
    std::span<Delivery> deliveries(&delivery, 1);
    handler(connection, deliveries);
  }
  // It passes on what the handler takes, so a call with a session must not compile.
  void operator()(soci::session&, Delivery&) const = delete;
};

}  // namespace

class TxConsumer::Impl : public detail::ConsumerContext {
 public:
  using ConsumerContext::ConsumerContext;
};

TxConsumer::TxConsumer(Pool& pool, std::string consumer, TxConsumerOptions options)
    : impl_(std::make_unique<Impl>(detail::SessionProvider(detail::PoolAccess::state(pool)), std::move(consumer),
                                   std::move(options))) {}

TxConsumer::TxConsumer(ConnectionRef connection, std::string consumer, TxConsumerOptions options)
    : impl_(std::make_unique<Impl>(detail::SessionProvider(detail::ConnectionAccess::of(connection)),
                                   std::move(consumer), std::move(options))) {}

TxConsumer::TxConsumer(TxConsumer&&) noexcept = default;
TxConsumer& TxConsumer::operator=(TxConsumer&&) noexcept = default;
TxConsumer::~TxConsumer() = default;

std::string_view TxConsumer::name() const noexcept { return impl_->consumer; }

const TxConsumerOptions& TxConsumer::options() const noexcept { return impl_->options; }

Result TxConsumer::consume(const Message& message, const Handler& handler) {
  detail::refuse_empty(handler);
  try {
    return detail::SingleDelivery(*impl_, message, handler).consume();
  } catch (const detail::HandlerError& error) {
    std::rethrow_exception(error.original);
  }
}

std::vector<Result> TxConsumer::consume_batch(std::span<const Message> messages, const Handler& handler,
                                              OnFailure on_failure) {
  detail::refuse_empty(handler);
  if (impl_->options.count_starts) return detail::consume_sequentially(*impl_, messages, handler, on_failure);
  return detail::BatchDelivery(*impl_, messages, {handler}, on_failure).consume();
}

std::vector<Result> TxConsumer::consume_batch(std::span<const Message> messages, const BatchHandler& handler,
                                              OnFailure on_failure) {
  detail::refuse_empty(handler);
  const Handler one = HandlerOfOne{handler};
  if (impl_->options.count_starts) return detail::consume_sequentially(*impl_, messages, one, on_failure);
  return detail::BatchDelivery(*impl_, messages, {one, &handler}, on_failure).consume();
}

std::vector<Result> TxConsumer::consume_batch(std::span<const Message> messages, const BatchHandlerPair& handlers,
                                              OnFailure on_failure) {
  detail::refuse_empty(handlers);
  if (impl_->options.count_starts) return detail::consume_sequentially(*impl_, messages, handlers.each, on_failure);
  return detail::BatchDelivery(*impl_, messages, {handlers.each, &handlers.at_once, true}, on_failure).consume();
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
