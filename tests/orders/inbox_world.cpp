#include "orders/inbox_world.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <txinbox/error.hpp>
#include <txinbox/native.hpp>

#include "support/every_order.hpp"
#include "types/enum_names.hpp"

namespace txinbox::test {

using namespace std::chrono_literals;

namespace {

constexpr detail::EnumNames<InboxAct, InboxAct::renews> act_names("succeeds", "stores", "refuses", "fails", "postpones",
                                                                  "wraps", "goes_back", "swallows", "commits",
                                                                  "commits_later", "restarts", "rolls_back",
                                                                  "works_outside", "forgets", "renews");
constexpr detail::EnumNames<InboxMode, InboxMode::pair> mode_names("one", "counts_starts", "claim_wait", "valid_for",
                                                                   "lease", "each", "each_stops", "at_once", "pair");

}  // namespace

std::string_view to_string(InboxAct act) noexcept { return act_names[act]; }
std::string_view to_string(InboxMode mode) noexcept { return mode_names[mode]; }

InboxWorld::InboxWorld(ScriptedDatabase& database, InboxMode mode, InboxAct act)
    : database_(database), mode_(mode), act_(act) {
  for (Process& each : processes_) each.state = database.open_pool();
}

/// Each run begins in the same state: with an open connection that has seen no duplicate.
void InboxWorld::start_process(Process& process) {
  process.state->give_back(process.state->acquire({}));
  process.pool = std::make_unique<Pool>(detail::PoolAccess::make(process.state));
  if (mode_ == InboxMode::lease) {
    process.lease_consumer = std::make_unique<LeaseConsumer>(
        *process.pool, "svc", LeaseTerms{},
        ConsumerOptions{.retry = {.max_runs = 3, .initial_backoff = 0ms, .max_backoff = 0ms}, .max_attempts = 1});
    return;
  }
  const auto pause = mode_ == InboxMode::valid_for ? 2ms : 0ms;
  // Without a second attempt, the consumer must look for what a lost connection has left before the delivery ends.
  const int attempts = database_.rule() == CommitRule::watches ? 1 : 3;
  ConsumerOptions options{.retry = {.max_runs = attempts, .initial_backoff = pause, .max_backoff = pause},
                          .listeners = {on_event([this](const Event& event) {
                            if (event.type == EventType::torn) ++sent_of(event.business_key).torn;
                          })},
                          .max_attempts = 1,
                          .count_starts = mode_ == InboxMode::counts_starts};
  if (mode_ == InboxMode::claim_wait) options.claim_wait = 0ms;
  process.consumer = std::make_unique<TxConsumer>(*process.pool, "svc", std::move(options));
}

std::string InboxWorld::run(std::vector<SqlTwistAt> twists) {
  problem_.clear();
  sent_.clear();
  if (is_batch(mode_)) sent_.push_back({"a", InboxAct::succeeds});
  sent_.push_back({"b", act_});
  if (is_batch(mode_)) sent_.push_back({"c", InboxAct::succeeds});
  const std::size_t most_rounds = twists.size() + 5;
  for (Process& each : processes_) start_process(each);
  is_disturbed_ = !twists.empty();
  is_disturbed_twice_ = twists.size() > 1;
  database_.start(std::move(twists));
  const auto is_done = [&] { return std::ranges::all_of(sent_, &Sent::done); };
  for (std::size_t round = 0; round < most_rounds && !is_done(); ++round) {
    if (round > processes_.size()) {  // as if a minute had passed: other deliveries do not wait any more
      database_.change("UPDATE txinbox_consumed_message SET lease_expires_at = '2020-01-01' WHERE state = 'torn'");
    }
    deliver(processes_.at(round % processes_.size()));
  }
  database_.end_script();
  for (const Sent& each : sent_) {
    if (!each.done) wrong(each, "is never acknowledged");
  }
  if (mode_ != InboxMode::valid_for) {
    for (Sent& each : sent_) each.done = false;
    deliver(processes_[0]);
  }
  if (!is_disturbed_ && mode_ != InboxMode::lease) {
    for (const Sent& each : sent_) check_heard(each);
  }
  for (Process& each : processes_) {
    each.consumer.reset();
    each.lease_consumer.reset();
  }
  return problem_;
}

void InboxWorld::deliver(Process& process) {
  if (is_batch(mode_)) {
    deliver_batch(process);
  } else {
    deliver_one(process, sent_.front());
  }
  for (Sent& each : sent_) check(each);
}

void InboxWorld::deliver_one(Process& process, Sent& sent) {
  if (mode_ == InboxMode::lease) {  // each delivery begins when the lease of the last one is over
    database_.change("UPDATE txinbox_consumed_message SET lease_expires_at = '2020-01-01' WHERE state = 'consuming'");
  }
  Message message{.business_key = sent.key};
  if (mode_ == InboxMode::valid_for) {  // each delivery begins when the last one is too old
    message.valid_for = 1ms;
    database_.change("UPDATE txinbox_consumed_message SET consumed_at = '2020-01-01' WHERE state = 'consumed'");
  }
  try {
    if (mode_ == InboxMode::lease) {
      end(sent, process.lease_consumer->consume(message, [&](Lease& lease) { handle(lease); }));
    } else {
      end(sent, process.consumer->consume(
                    message, [&](::sqlite3* connection, Delivery& delivery) { handle(connection, delivery); }));
    }
  } catch (...) {
    end(sent, {.outcome = Outcome::failed, .error = std::current_exception()});
  }
}

void InboxWorld::deliver_batch(Process& process) {
  std::vector<Message> messages;
  std::vector<Sent*> open;
  for (Sent& each : sent_) {
    if (each.done) continue;
    messages.push_back({.business_key = each.key});
    open.push_back(&each);
  }
  const Handler one = [&](::sqlite3* connection, Delivery& delivery) { handle(connection, delivery); };
  const BatchHandler all = [&](::sqlite3* connection, std::span<Delivery> deliveries) {
    for (Delivery& each : deliveries) handle(connection, each);
  };
  const OnFailure on_failure = mode_ == InboxMode::each_stops ? OnFailure::stop : OnFailure::skip;
  std::vector<Result> results;
  try {
    if (mode_ == InboxMode::at_once) {
      results = process.consumer->consume_batch(messages, all, on_failure);
    } else if (mode_ == InboxMode::pair) {
      results = process.consumer->consume_batch(messages, BatchHandlers{all, one}, on_failure);
    } else {
      results = process.consumer->consume_batch(messages, one, on_failure);
    }
  } catch (...) {
    results.assign(messages.size(), {.outcome = Outcome::failed, .error = std::current_exception()});
  }
  for (std::size_t i = 0; i < open.size(); ++i) end(*open[i], results[i]);
}

InboxWorld::Sent& InboxWorld::sent_of(std::string_view key) { return *std::ranges::find(sent_, key, &Sent::key); }

void InboxWorld::handle(Lease& lease) {
  Sent& sent = sent_of(lease.message().business_key);
  database_.change("INSERT INTO effect VALUES ('" + sent.key + "')");
  ++sent.runs;
  if (sent.act == InboxAct::renews) lease.renew();
  if (sent.act == InboxAct::stores) lease.delivery().store("result of " + sent.key);
  if (sent.act == InboxAct::fails) throw std::runtime_error("the handler fails");
  if (sent.act == InboxAct::postpones && sent.runs <= 2) throw RetryLater(1s, "the handler needs time");
}

void InboxWorld::handle(::sqlite3* connection, Delivery& delivery) {
  Sent& sent = sent_of(delivery.message().business_key);
  const auto run = [&](const std::string& sql) { database_.run_of_handler(connection, sql); };
  const std::string effect = "INSERT INTO effect VALUES ('" + sent.key + "')";
  ++sent.runs;
  switch (sent.act) {
    case InboxAct::succeeds:
      return run(effect);
    case InboxAct::stores:
      run(effect);
      return delivery.store("result of " + sent.key);
    case InboxAct::refuses:
      run(effect);
      delivery.refuse("refusal of " + sent.key);
    case InboxAct::fails:
      run(effect);
      throw std::runtime_error("the handler fails");
    case InboxAct::postpones:
      run(effect);
      if (sent.runs <= 2) throw RetryLater(1s, "the handler needs time");
      return;
    case InboxAct::wraps:
      try {
        return run(effect);
      } catch (const DatabaseError&) {
        throw std::runtime_error("the handler wraps the error");
      }
    case InboxAct::goes_back:
      run("SAVEPOINT of_handler");
      run(effect);
      run("ROLLBACK TO of_handler");
      return run(effect);
    case InboxAct::swallows:
      run(effect);
      try {
        run("DELETE FROM effect WHERE business_key = 'none'");
      } catch (const DatabaseError&) {  // this is what it does wrong
      }
      return;
    case InboxAct::commits:
      run(effect);
      return run("COMMIT");
    case InboxAct::commits_later:
      run(effect);
      if (sent.runs == 1) throw std::runtime_error("the handler fails");
      return run("COMMIT");
    case InboxAct::restarts:
      run(effect);
      run("COMMIT");
      return run("BEGIN");
    case InboxAct::rolls_back:
      run(effect);
      return run("ROLLBACK");
    case InboxAct::works_outside:
      run("ROLLBACK");
      run("BEGIN");
      run(effect);
      ++sent.unknown;
      run("COMMIT");
      --sent.unknown;
      return;
    case InboxAct::forgets:
      run(effect);
      return run("DELETE FROM txinbox_consumed_message WHERE business_key = '" + sent.key + "'");
    case InboxAct::renews:
      throw std::logic_error("it has no lease");
  }
}

namespace {

std::string text_of(const std::vector<SqlTwistAt>& twists) {
  std::vector<std::string> names;
  for (const SqlTwistAt& each : twists) names.push_back(fmt::format("{} at call {}", to_string(each.what), each.call));
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

int try_inbox_orders(CommitRule rule, InboxMode mode, std::span<const InboxAct> acts, int count) {
  ScriptedDatabase database(rule);
  int tried = 0;
  for (const InboxAct act : acts) {
    // Nobody sees that such a handler has committed.
    if (rule == CommitRule::commits && act == InboxAct::works_outside) continue;
    InboxWorld world(database, mode, act);
    tried += try_every_order_of_points<SqlTwistAt>(count, [&](const std::vector<SqlTwistAt>& twists) {
      const std::string problem = world.run(twists);
      if (problem.empty()) return database.calls();
      FAIL_CHECK(fmt::format("{}, {}, {}, {}: {}", to_string(rule), to_string(mode), to_string(act), text_of(twists),
                             problem));
      return SqlCalls();
    });
  }
  return tried;
}

}  // namespace txinbox::test
