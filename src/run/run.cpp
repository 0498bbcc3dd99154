#include <txinbox/run.hpp>

#include "consume/consumer_policy.hpp"
#include "run/job_runner.hpp"
#include "run/loop.hpp"
#include "types/enum_names.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

constexpr detail::EnumNames<Ordering, Ordering::key> order_names("lane", "key");
constexpr detail::EnumNames<RunEnd, RunEnd::not_at_end> run_end_names("stopped", "idle", "unreachable", "not_at_end");

}  // namespace

std::string_view to_string(Ordering order) noexcept { return order_names[order]; }
std::string_view to_string(RunEnd end) noexcept { return run_end_names[end]; }

RunSummary run(Source& source, TxConsumer& consumer, const MessageOf& message_of, const BatchHandlers& handlers,
               const RunOptions& options) {
  detail::refuse_empty(handlers);
  const detail::TxJobRunner runner(consumer, handlers, options);
  return detail::Loop(source, runner, message_of, options).run();
}

RunSummary run(Source& source, LeaseConsumer& consumer, const MessageOf& message_of, const LeaseHandler& handler,
               const RunOptions& options) {
  detail::refuse_empty(handler);
  const detail::LeaseJobRunner runner(consumer, handler);
  return detail::Loop(source, runner, message_of, options).run();
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
