#include "sim/workloads/consuming.hpp"

#include <algorithm>
#include <functional>
#include <span>
#include <stop_token>
#include <utility>

#include <fmt/format.h>
#include <txinbox/native.hpp>
#include <txinbox/txinbox.hpp>

namespace txinbox::sim {

using namespace std::chrono_literals;

Consuming::Consuming(World& world, Publishing* publishing)
    : Workload(world),
      publishing_(publishing),
      feed_(world, "key", world.plan.messages),
      operator_(world, "svc", [this](const std::string& key) { return is_held(sent_.at(key)); }),
      eraser_(world, "svc") {
  feed_.broker().on_end = [this](const BrokerMessage& message, const DeadLetter* letter) { end_of(message, letter); };
  if (publishing_ != nullptr) {
    publishing_->may_be_late = [this](const std::string& cause) { return sent_.contains(cause) && may_be_late(cause); };
  }
}

std::vector<std::string> Consuming::services() const {
  std::vector<std::string> names;
  add_names(names, "consumer", world_.plan.consumers);
  if (world_.plan.has_operator()) names.emplace_back("operator");
  if (world_.plan.erase_every > 0s) names.emplace_back("eraser");
  return names;
}

void Consuming::step() {
  feed_.step([this](const Placed& placed) { return add(placed); });
  for (const std::string& key : eraser_.take_due()) feed_.send_again(key);
}

std::optional<Waiting> Consuming::waiting(bool stuck) {
  if (eraser_.has_more()) return Waiting{"", "messages that are sent again after their erasure"};
  return feed_.waiting(stuck);
}

SimTime Consuming::longest_decisions() const {
  return Operator::longest_decision * std::ranges::count_if(sent_, [this](const auto& each) {
           return !each.second.can_succeed && is_held(each.second);
         });
}

bool Consuming::add(const Placed& placed) {
  const Plan& plan = world_.plan;
  Sent& sent = sent_[placed.key];
  sent.act = draw_act(plan, Feed::may_be_stuck(placed.lane));
  sent.can_succeed = can_succeed(sent.act, *plan.personality);
  sent.commits = commits(sent.act, *plan.personality);
  sent.has_order = plan.broker_kind != BrokerKind::queue && (!plan.orders_by_key || placed.record_key);
  // A handler that commits its effect alone has rolled back the messages of its batch that come before it.
  if (sent.has_order && !placed.is_sent_again && sent.act != Act::commits_another) {
    sent.sequence = fmt::format("lane{}{}", placed.lane, placed.record_key.value_or(""));
    sent.position = positions_[sent.sequence]++;
  }
  return sent.act == Act::is_stuck;
}

void Consuming::serve(std::size_t service, const std::stop_token& stop) {
  const Plan& plan = world_.plan;
  if (service < plan.consumers) return consume(stop);
  return plan.has_operator() && service == plan.consumers ? operator_.work(stop) : eraser_.work(stop);
}

void Consuming::consume(const std::stop_token& stop) {
  const Plan& plan = world_.plan;
  Pool pool = world_.open_pool(plan.workers + 1);
  ConsumerOptions consumer_options{.stop = stop,
                                   .listeners = {on_event([this](const RunEvent& event) { note_refusal(event); })},
                                   .max_attempts = plan.max_attempts,
                                   .count_starts = plan.counts_starts};
  if (plan.waits_for_claims) consumer_options.claim_wait = 100ms;
  if (plan.has_recent_keys) consumer_options.recent_keys = {.capacity = 50, .max_age = 5s};
  if (plan.pause_every > 0s) consumer_options.listeners.push_back(operator_.listener());
  TxConsumer consumer(pool, "svc", std::move(consumer_options));
  const std::unique_ptr<SimSource> source = feed_.broker().connect();
  RunOptions options{.batch = plan.batch,
                     .workers = plan.workers,
                     .order = plan.orders_by_key ? Ordering::key : Ordering::lane,
                     .hold_parked = plan.holds_parked,
                     .max_in_flight = plan.max_in_flight,
                     .max_backoff = 2s,
                     .breaker = breaker_of(plan)};
  if (plan.max_waiting > 0) options.max_waiting = plan.max_waiting;
  watch_held(world_, *source, options);
  const auto message_of = [](const Incoming& in) { return Message{.business_key = std::string(in.body)}; };
  const Handler one = [this](::sqlite3* connection, Delivery& delivery) { handle(connection, delivery, {}); };
  const BatchHandler set = [this](::sqlite3* connection, std::span<Delivery> deliveries) {
    for (Delivery& each : deliveries) handle(connection, each, deliveries);
  };
  switch (plan.handlers) {
    case HandlerKind::one:
      (void)txinbox::run(*source, consumer, message_of, one, options);
      break;
    case HandlerKind::set:
      (void)txinbox::run(*source, consumer, message_of, set, options);
      break;
    case HandlerKind::pair:
      (void)txinbox::run(*source, consumer, message_of, BatchHandlers{set, one}, options);
      break;
  }
}

void Consuming::note_refusal(const RunEvent& event) {
  const Personality& database = *world_.plan.personality;
  const bool is_refusal = event.error_class.ends_with(database.error.full) ||
                          (database.lost_is_io_error && event.error_class.ends_with(database.error.lost));
  if (event.type != RunEventType::retry || !is_refusal) return;
  ++sent_.at(std::string(event.business_key)).refusals;
}

/// The act of the handler this time.
Consuming::Act Consuming::act_now(const std::string& key, Sent& sent) const {
  if (sent.can_succeed) return sent.act;
  const bool is_repaired_at_end = world_.is_quiet && world_.plan.holds_parked && world_.plan.breaker > 0;
  if (is_repaired_at_end || operator_.decision(key).is_repaired) sent.is_repaired = true;
  return sent.is_repaired ? Act::succeeds : sent.act;
}

namespace {

/// Does it, and ignores an error with this code. This is what the handler does wrong.
void ignore(std::string_view code, const std::function<void()>& work) {
  try {
    work();
  } catch (const DatabaseError& error) {
    if (error.code() != code) throw;
  }
}

}  // namespace

/// `set` has all messages of the call, if the handler is one for a set.
void Consuming::handle(::sqlite3* connection, Delivery& delivery, std::span<const Delivery> set) {
  const std::string key = delivery.message().business_key;
  Sent& sent = sent_.at(key);
  ++sent.runs;
  const std::string& name = threads().current_process().name();
  world_.story.tell(key, "{} runs {} for the {}. time", name, key, sent.runs);
  if (ServerSession::of(connection).is_in_guarded_transaction()) {
    check_begin(key, sent);
  } else if (sent.is_claim_committed) {
    // An earlier handler of the batch has committed the claim and begun another transaction. When the handlers have
    // returned, txinbox finds that it is another one, and rolls it back.
    sent.is_hurt = true;
  }
  const Act act = act_now(key, sent);
  const auto run = [&](const std::string& sql) { ServerSession::of(connection).execute(sql); };
  const std::string effect = World::insert_effect(key);
  if (act == Act::goes_back) {
    run("SAVEPOINT of_handler");
    run(effect);
    run("ROLLBACK TO of_handler");
  }
  run(effect);
  world_.story.tell(key, "{} has written the effect of {}", name, key);
  const Transaction* const transaction = ServerSession::of(connection).transaction();
  if (transaction != nullptr) ran_in_[transaction->name].push_back(key);
  if (publishing_ != nullptr && act != Act::commits_another) {
    publishing_->add(connection, key, sent.sequence, sent.position);
  }
  // Another handler of the set has ended the transaction. What is committed now would be without a claim.
  if (act >= Act::commits && !ServerSession::of(connection).is_in_guarded_transaction()) return;
  if (sent.commits && act == sent.act) hurt_batch_of(connection, set);
  const auto& database = world_.plan.personality->error;
  switch (act) {
    case Act::is_slow:
      return threads().sleep_for(2s);
    case Act::fails:
      throw std::runtime_error("the handler fails");
    case Act::fails_at_first:
      if (sent.runs == 1) throw std::runtime_error("the handler fails once");
      return;
    case Act::postpones:
      if (sent.runs == 1) throw RetryLater(3s, "the handler waits for something");
      return;
    case Act::is_stuck:
      if (!world_.is_healed) throw RetryLater(1s, "the handler waits for a service that is away");
      return;
    case Act::refuses:
      delivery.refuse("no");
    case Act::swallows:
      try {
        run("INSERT INTO txinbox_schema SELECT * FROM txinbox_schema");  // these rows exist
      } catch (const DatabaseError&) {                                   // this is what it does wrong
      }
      return;
    case Act::rolls_back:
      return run("ROLLBACK");
    case Act::swallows_deadlock:
      return ignore(database.deadlock, [&] { ServerSession::of(connection).run_into_deadlock(); });
    case Act::writes_after_rollback:
      run("ROLLBACK");
      return ignore(database.late, [&] { run(effect); });
    case Act::commits:
      return run("COMMIT");
    case Act::commits_and_throws:
      run("COMMIT");
      throw std::runtime_error("the handler fails after its commit");
    case Act::writes_after_commit:
      ignore(database.refused, [&] { run("COMMIT"); });
      return ignore(database.late, [&] { run(effect); });
    case Act::begins:
      return run("BEGIN");
    case Act::commits_another:
      run("ROLLBACK");
      run("BEGIN");
      run(effect);
      return run("COMMIT");
    case Act::succeeds:
    case Act::goes_back:
      return;
  }
}

/// A handler is about to commit the claims of its batch. Nobody can tell whether the effects of its set are committed.
void Consuming::hurt_batch_of(::sqlite3* connection, std::span<const Delivery> set) {
  for (const Delivery& each : set) sent_.at(each.message().business_key).is_hurt = true;
  ServerSession& session = ServerSession::of(connection);
  if (session.transaction() != nullptr) {
    for (const std::string& each : ran_in_[session.transaction()->name]) sent_.at(each).is_hurt = true;
  }
  std::vector<Values> claims;
  session.run(
      "SELECT business_key, attempt_token FROM txinbox_consumed_message WHERE consumer = 'svc' AND state = 'torn'", {},
      &claims);
  for (const Values& each : claims) {
    const std::string& key = each[0].bytes;
    sent_.at(key).is_claim_committed = true;
    const auto claim = committed_claims_.emplace(each[1].bytes, threads().current_process_ptr()).first;
    const bool is_own = claim->second.get() == &threads().current_process();
    if (is_own) world_.story.tell(key, "{} commits the claim of {} in a handler", claim->second->name(), key);
  }
}

}  // namespace txinbox::sim
