#include <txinbox/tx_consumer.hpp>

#include <exception>
#include <utility>

#include <txinbox/pool.hpp>

#include "backend/connection_access.hpp"
#include "consume/batch_delivery.hpp"
#include "consume/consume_sequentially.hpp"
#include "consume/consumer_context.hpp"
#include "consume/single_delivery.hpp"
#include "consume/tx_consumer_access.hpp"
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

/// The errors as the handlers threw them.
std::vector<Result> with_original_errors(std::vector<Result> results) {
  for (Result& each : results) each.error = detail::original_error(each.error);
  return results;
}

}  // namespace

class TxConsumer::Impl : public detail::ConsumerContext {
 public:
  using ConsumerContext::ConsumerContext;
};

TxConsumer::TxConsumer(Pool& pool, std::string consumer, ConsumerOptions options)
    : impl_(std::make_unique<Impl>(detail::SessionProvider(detail::PoolAccess::state(pool)), std::move(consumer),
                                   std::move(options))) {}

TxConsumer::TxConsumer(ConnectionRef connection, std::string consumer, ConsumerOptions options)
    : impl_(std::make_unique<Impl>(detail::SessionProvider(detail::ConnectionAccess::of(connection)),
                                   std::move(consumer), std::move(options))) {}

TxConsumer::TxConsumer(TxConsumer&&) noexcept = default;
TxConsumer& TxConsumer::operator=(TxConsumer&&) noexcept = default;
TxConsumer::~TxConsumer() = default;

std::string_view TxConsumer::name() const noexcept { return impl_->consumer; }

const ConsumerOptions& TxConsumer::options() const noexcept { return impl_->options; }

Result TxConsumer::consume(const Message& message, const Handler& handler) {
  detail::refuse_empty(handler);
  try {
    return detail::SingleDelivery(*impl_, message, handler, detail::Counting::at_once).consume();
  } catch (const detail::HandlerError& error) {
    std::rethrow_exception(detail::original_error(error.original));
  }
}

std::vector<Result> TxConsumer::consume_batch(std::span<const Message> messages, const BatchHandlers& handlers,
                                              OnFailure on_failure) {
  return with_original_errors(
      detail::TxConsumerAccess::consume_batch(*this, messages, handlers, on_failure, detail::Counting::at_once)
          .results);
}

namespace detail {

bool TxConsumerAccess::counts(const TxConsumer& consumer, const std::exception_ptr& error) {
  return consumer.impl_->counts(Failure(error), Counting::at_once);
}

bool TxConsumerAccess::is_paused(TxConsumer& consumer) { return consumer.impl_->is_paused(); }

bool TxConsumerAccess::is_parked(TxConsumer& consumer, const Message& message) {
  return consumer.impl_->is_parked(message);
}

bool TxConsumerAccess::has_undecided_claims(const TxConsumer& consumer) noexcept {
  return consumer.impl_->backlog.has_due();
}

void TxConsumerAccess::resolve_undecided_claims(TxConsumer& consumer) noexcept { consumer.impl_->resolve_backlog(); }

BatchResults TxConsumerAccess::consume_batch(TxConsumer& consumer, std::span<const Message> messages,
                                             const BatchHandlers& handlers, OnFailure on_failure, Counting counting) {
  refuse_empty(handlers);
  const bool has_each = handlers.each() != nullptr;
  const Handler at_once_for_one = has_each ? Handler() : Handler(HandlerOfOne{*handlers.at_once()});
  const Handler& one = has_each ? *handlers.each() : at_once_for_one;
  ConsumerContext& context = *consumer.impl_;
  if (context.options.count_starts) return consume_sequentially(context, messages, one, on_failure, counting);
  const HandlersOfBatch code{.one = one, .at_once = handlers.at_once(), .one_isolates = has_each};
  return BatchDelivery(context, messages, code, on_failure, counting).consume();
}

}  // namespace detail

TXINBOX_NAMESPACE_END
}  // namespace txinbox
