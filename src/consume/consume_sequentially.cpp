#include "consume/consume_sequentially.hpp"

#include <exception>

#include "backend/failure.hpp"
#include "consume/single_delivery.hpp"
#include "types/handler_error.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

bool ends_batch(const Result& result, OnFailure on_failure) noexcept {
  const bool is_parked = result.outcome == Outcome::parked && (result.error || on_failure == OnFailure::stop_at_parked);
  const bool blocks = is_parked || result.outcome == Outcome::failed || result.outcome == Outcome::in_progress ||
                      result.outcome == Outcome::postponed;
  return (on_failure != OnFailure::skip && blocks) || Failure(result.error).is_of_environment();
}

BatchResults consume_sequentially(ConsumerContext& context, std::span<const Message> messages, const Handler& handler,
                                  OnFailure on_failure, Counting counting) {
  BatchResults all;
  std::vector<Result>& results = all.results;
  results.reserve(messages.size());
  bool over = false;
  for (const Message& message : messages) {
    if (over) {
      results.push_back({.outcome = Outcome::not_run});
      continue;
    }
    SingleDelivery delivery(context, message, handler, counting, results.size());
    try {
      results.push_back(delivery.consume());
    } catch (...) {
      const std::exception_ptr error = std::current_exception();
      // As in a batch, an error that concerns every message is thrown if no message has a result yet.
      if (results.empty() && !delivery.handler_ran() && action_for(error) == Action::stop) throw;
      if (!delivery.handler_ran()) all.failed_before_handler.push_back(results.size());
      results.push_back({.outcome = Outcome::failed, .error = error});
    }
    Result& last = results.back();
    over = context.options.stop.stop_requested() || ends_batch(last, on_failure) ||
           (last.outcome == Outcome::failed && is_transient(last.error));
  }
  return all;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
