#include "cli/consume/broker_run.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <txinbox/delivery.hpp>
#include <txinbox/message_of.hpp>
#include <txinbox/result.hpp>

#include "base/text.hpp"
#include "cli/sql/prepared_script.hpp"
#include "console/duration.hpp"
#include "console/exit_status.hpp"
#include "console/json_output.hpp"
#include "console/usage_error.hpp"
#include "console/utf8.hpp"

namespace txinbox::cli {

std::string problem_text(std::string_view name, std::string_view what) {
  return fmt::format("{}: {}", printable(name), detail::one_line(what));
}

Ordering order_of(const ConsumeOptions& options) {
  if (!options.order.empty()) return options.order == "key" ? Ordering::key : Ordering::lane;
  return options.workers > 1 && options.from.starts_with("kafka:") ? Ordering::key : Ordering::lane;
}

int BrokerRun::run(Source& source, TxConsumer& consumer) {
  if (!source.has_dead_letters()) {
    throw UsageError(
        "there is no place for messages that cannot be consumed: name a topic or queue with --dead-letters");
  }
  RunOptions options{.batch = options_.batch,
                     .workers = options_.workers,
                     .order = order_of(options_),
                     .hold_parked = options_.hold_parked,
                     .status_interval = std::chrono::seconds(1)};
  if (const auto backoff = parse_duration(options_.backoff)) {
    options.backoff = *backoff;
    options.max_backoff = std::max(options.max_backoff, options.backoff);
  }
  options.breaker.failures = options_.breaker;
  if (!options_.idle_exit.empty()) options.idle_exit = parse_duration(options_.idle_exit);
  const MessageOf message_of = [this](const Incoming& incoming) {
    Message message;
    Values values;
    messages_.read(incoming, message, values);
    return message;
  };
  const Handler each = [this](soci::session& session, Delivery& delivery) { run_script(session, delivery); };
  const BatchHandler at_once = [&](soci::session& session, std::span<Delivery> deliveries) {
    if (deliveries.front().attempt() > 1) {  // after a transient error: one by one, to find its message
      for (Delivery& delivery : deliveries) run_script(session, delivery);
    } else {
      run_together(session, deliveries);
    }
  };
  RunSummary done;
  try {
    done = script_.most_together > 0 ? txinbox::run(source, consumer, message_of, BatchHandlers{at_once, each}, options)
                                     : txinbox::run(source, consumer, message_of, each, options);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    progress_.message(fmt::format("acknowledged {} messages before the error", grouped(acknowledged_)));
    progress_.erase();
    throw;
  }
  const std::lock_guard lock(mutex_);
  progress_.erase();
  output_.line(summary(done));
  if (signals_.stopped() || output_.failed()) return exit_stopped;
  if (done.end == RunEnd::unreachable || done.end == RunEnd::not_at_end) {
    progress_.message(done.end == RunEnd::unreachable
                          ? "ended: the broker cannot be reached, so messages may wait there"
                          : "ended: messages wait at the broker, but it gave none; see whether other consumers of the "
                            "group have its partitions, and whether the client can read the messages");
    return exit_broker;
  }
  return done.dead_letters == 0 ? exit_ok : exit_found;
}

Values BrokerRun::values_of(const Delivery& delivery) const {
  Message message;
  Values values;
  messages_.read(delivery.incoming(), message, values);
  return values;
}

void BrokerRun::run_script(soci::session& session, Delivery& delivery) const {
  const Values values = values_of(delivery);
  auto& prepared = delivery.per_connection<PreparedScript>(session);
  for (std::size_t i = 0; i < script_.statements.size(); ++i)
    prepared.run(script_, i, values, delivery.keeps_statements());
}

void BrokerRun::run_together(soci::session& session, std::span<Delivery> deliveries) const {
  std::vector<Values> values;
  std::vector<const Values*> pointers;
  values.reserve(deliveries.size());  // `pointers` points into it
  for (const Delivery& each : deliveries) pointers.push_back(&values.emplace_back(values_of(each)));
  Delivery& first = deliveries.front();
  first.per_connection<PreparedScript>(session).run_together(script_, pointers, first.keeps_statements());
}

void BrokerRun::operator()(const Event& event) {
  if (!options_.json || event.message_id.empty()) return;
  switch (event.type) {
    case EventType::retry:
    case EventType::torn:
    case EventType::lease_taken_over:
    case EventType::purged:
      return;
    default:
      break;
  }
  Json json{{"message", event.message_id}, {"key", event.business_key}, {"outcome", to_string(event.type)}};
  if (event.error) json.set("error", detail::one_line(describe_error(event.error, options_.verbose)));
  const std::lock_guard lock(mutex_);
  print(json.text());
}

void BrokerRun::print(std::string_view text) {
  progress_.erase();
  if (!output_.line(text)) signals_.request_stop();
}

void BrokerRun::operator()(const RunEvent& event) {
  const std::lock_guard lock(mutex_);
  switch (event.type) {
    case RunEventType::acknowledged:
      acknowledged_ += event.count;
      break;
    case RunEventType::retry:
      report_problem(event, "runs again in " + format_duration(event.backoff));
      break;
    case RunEventType::dead_letter:
      report_problem(event, fmt::format("dead letter ({})", event.reason));
      if (options_.json) {
        Json json{{"message", traceable_id(std::string(event.message_id))}};
        if (!event.business_key.empty()) json.set("key", event.business_key);
        json.set("outcome", "dead_letter");
        json.set("reason", event.reason);
        print(json.text());
      }
      break;
    case RunEventType::dead_letter_failed:
      report_problem(event, "the dead letter is not confirmed; tried again in " + format_duration(event.backoff));
      break;
    case RunEventType::unavailable:
      progress_.message(fmt::format("the database cannot be used: {}; tried again in {}",
                                    detail::one_line(describe_error(event.error, options_.verbose)),
                                    format_duration(event.backoff)));
      break;
    case RunEventType::dropped:
      progress_.message(fmt::format("{} messages went back to the broker", event.count));
      break;
    case RunEventType::source:
      progress_.message(problem_text(event.source, event.source_event->text));
      break;
    case RunEventType::status:
      lag_ = event.status->lag ? ", " + grouped(*event.status->lag) + " wait at the broker" : "";
      break;
    case RunEventType::tripped:
      progress_.message(
          fmt::format("the SQL fails for all messages: {}; their failures do not count. One message is "
                      "tried again in {}, then others at longer intervals, until one is consumed",
                      detail::one_line(describe_error(event.error, options_.verbose)), format_duration(event.backoff)));
      break;
    case RunEventType::resumed:
      progress_.message("a message was consumed again, so all of them run");
      break;
    case RunEventType::paused:
      progress_.message("an operator has paused the consumer; txinbox status says who and why");
      break;
    case RunEventType::unpaused:
      progress_.message("the consumer is not paused any more");
      break;
    case RunEventType::held:
      report_problem(event, "parked; it keeps its place until an operator decides ('txinbox failed list')");
      break;
  }
  progress_.draw(fmt::format("{} messages{}", grouped(acknowledged_), lag_));
}

/// The business key can be personal data. So the text names the message by the broker's id.
void BrokerRun::report_problem(const RunEvent& event, std::string_view what) {
  std::string why;
  if (event.error) why = detail::one_line(describe_error(event.error, options_.verbose)) + "; ";
  progress_.message(problem_text(event.message_id, why + std::string(what)));
}

std::string BrokerRun::summary(const RunSummary& done) const {
  const double seconds = progress_.elapsed().count();
  const auto rate = static_cast<unsigned long long>(seconds > 0 ? static_cast<double>(done.acknowledged) / seconds : 0);
  if (options_.json) {
    return Json{{"summary", true},
                {"received", done.received},
                {"consumed", done.consumed},
                {"already_consumed", done.already_consumed},
                {"discarded", done.discarded},
                {"dead_letters", done.dead_letters},
                {"retries", done.retries},
                {"acknowledged", done.acknowledged},
                {"end", to_string(done.end)},
                {"seconds", seconds},
                {"messages_per_second", rate}}
        .text();
  }
  std::string text = fmt::format("consumed {}, already consumed {}, dead letters {}, retries {}", done.consumed,
                                 done.already_consumed, done.dead_letters, done.retries);
  if (done.discarded > 0) text += fmt::format(", discarded {}", done.discarded);
  return text + fmt::format("  ({} messages/s)", grouped(rate));
}

}  // namespace txinbox::cli
