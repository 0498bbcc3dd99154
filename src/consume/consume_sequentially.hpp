#pragma once

#include <span>
#include <vector>

#include <txinbox/tx_consumer.hpp>
#include <txinbox/version.hpp>

#include "consume/consumer_context.hpp"
#include "consume/consumer_policy.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Whether no later message of the batch may run after this result. Without `OnFailure::skip`, they wait until
/// this message is delivered again. After an error of the environment, they would fail, too.
bool ends_batch(const Result&, OnFailure) noexcept;

/// Consumes a batch with one transaction for each message. `count_starts` needs this.
BatchResults consume_sequentially(ConsumerContext&, std::span<const Message>, const Handler&, OnFailure, Counting);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
