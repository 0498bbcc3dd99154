#include "sim/world.hpp"

#include <algorithm>
#include <array>
#include <stop_token>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <txinbox/native.hpp>
#include <txinbox/txinbox.hpp>

namespace txinbox::sim {

using namespace std::chrono_literals;

namespace {

std::mt19937_64& dice() { return Threads::instance()->random(); }

double share(std::mt19937_64& random) { return std::uniform_real_distribution<>()(random); }

/// How long the world may need for its last messages after the faults have ended.
constexpr SimTime longest_recovery = 30min;

}  // namespace

World::World(const Plan& plan, const Migrated& migrated)
    : plan_(plan),
      server_(*plan.personality, migrated),
      database_(server_),
      broker_(plan.lanes),
      services_(plan.processes) {
  server_.faults = plan.database;
  broker_.faults = plan.broker;
  broker_.on_end = [this](const BrokerMessage& message, const DeadLetter* letter) { end_of(message, letter); };
}

void World::wrong(const std::string& key, const std::string& what) {
  if (!problem_.empty()) return;
  problem_ = key.empty() ? what : key + " " + what;
  key_of_problem_ = key;
  tell(key, problem_);
}

void World::tell(const std::string& key, std::string text) {
  constexpr std::size_t most = 100'000;
  if (problem_.empty() || key == key_of_problem_) lines_.push_back({Threads::instance()->now(), key, std::move(text)});
  if (lines_.size() > most) lines_.pop_front();
}

std::string World::story() const {
  constexpr std::size_t most = 40;
  std::vector<const Line*> chosen;
  for (const Line& each : lines_) {
    if (each.key.empty() || each.key == key_of_problem_) chosen.push_back(&each);
  }
  if (chosen.size() > most) chosen.erase(chosen.begin(), chosen.end() - most);
  std::string text;
  for (const Line* const each : chosen) {
    text += fmt::format("  {:>12.6f} s  {}\n", std::chrono::duration<double>(each->time).count(), each->text);
  }
  return text;
}

std::string World::run() {
  for (Service& each : services_) start(each);
  publish();
  disturb();
  counts_.messages = plan_.messages;
  counts_.deliveries = broker_.deliveries();
  return problem_;
}

void World::publish() {
  for (std::size_t i = 0; i < plan_.messages; ++i) {
    const std::string key = fmt::format("key{}", i);
    sent_[key].act = draw_act();
    broker_.publish(dice()() % plan_.lanes, {.id = fmt::format("id{}", i), .body = key});
    if (share(dice()) < plan_.resend_rate) {
      broker_.publish(dice()() % plan_.lanes, {.id = fmt::format("id{}-again", i), .body = key});
    }
  }
}

World::Act World::draw_act() const {
  if (share(dice()) < 0.8) return Act::succeeds;
  const Act act = std::array{Act::fails_at_first, Act::postpones, Act::is_slow,    Act::goes_back,
                             Act::fails,          Act::swallows,  Act::rolls_back, Act::commits}[dice()() % 8];
  // Where the database does not refuse it, a handler's COMMIT also commits the claims of the messages before it in its
  // batch. They are parked then, with their effects.
  const bool hurts_others = act == Act::commits && plan_.batch > 1 && !plan_.personality->refuses_commit_of_handler;
  return hurts_others ? Act::fails : act;
}

void World::start(Service& service) {
  service.stop = std::make_unique<std::stop_source>();
  const std::string name = fmt::format("service {}", &service - services_.data() + 1);
  tell("", name + " starts");
  service.process =
      Threads::instance()->start_process(name, [this, token = service.stop->get_token()] { serve(token); });
}

/// What `main` of a service does.
void World::serve(const std::stop_token& stop) {
  try {
    Pool pool = database_.open_pool({.connections = plan_.workers + 1, .acquire_timeout = 5s, .lock_timeout = 1s});
    TxConsumer consumer(pool, "svc", {.stop = stop, .max_attempts = 5});
    SimSource source(broker_);
    RunOptions options{.batch = plan_.batch,
                       .workers = plan_.workers,
                       .max_in_flight = plan_.max_in_flight,
                       .max_backoff = 2s,
                       .stop = stop};
    if (plan_.max_waiting > 0) options.max_waiting = plan_.max_waiting;
    (void)txinbox::run(
        source, consumer, [](const Incoming& in) { return Message{.business_key = std::string(in.body)}; },
        [this](::sqlite3* connection, Delivery& delivery) { handle(connection, delivery); }, options);
  } catch (const std::exception& error) {  // the service ends, and is started again
    tell("", Threads::instance()->current_process().name() + " ends: " + error.what());
  }
}

void World::handle(::sqlite3* connection, Delivery& delivery) {
  const std::string key = delivery.message().business_key;
  Sent& sent = sent_.at(key);
  ++sent.runs;
  const std::string name = Threads::instance()->current_process().name();
  tell(key, fmt::format("{} runs {} for the {}. time", name, key, sent.runs));
  const auto run = [&](const std::string& sql) { ServerSession::of(connection).execute(sql); };
  const std::string effect = fmt::format("INSERT INTO effect (business_key) VALUES ('{}')", key);
  if (sent.act == Act::goes_back) {
    run("SAVEPOINT of_handler");
    run(effect);
    run("ROLLBACK TO of_handler");
  }
  run(effect);
  tell(key, fmt::format("{} has written the effect of {}", name, key));
  switch (sent.act) {
    case Act::is_slow:
      return Threads::instance()->sleep_for(2s);
    case Act::fails:
      throw std::runtime_error("the handler fails");
    case Act::fails_at_first:
      if (sent.runs == 1) throw std::runtime_error("the handler fails once");
      return;
    case Act::postpones:
      if (sent.runs == 1) throw RetryLater(3s, "the handler waits for something");
      return;
    case Act::swallows:
      try {
        run("INSERT INTO txinbox_schema SELECT * FROM txinbox_schema");  // these rows exist
      } catch (const DatabaseError&) {                                   // this is what it does wrong
      }
      return;
    case Act::rolls_back:
      return run("ROLLBACK");
    case Act::commits:
      return run("COMMIT");
    case Act::succeeds:
    case Act::goes_back:
      return;
  }
}

std::int64_t World::effects_of(const std::string& key) {
  const auto rows = server_.query(fmt::format("SELECT count(*) FROM effect WHERE business_key = '{}'", key));
  return rows.front().front().integer;
}

/// The broker has learned that a message is done. It will not deliver it again.
void World::end_of(const BrokerMessage& message, const DeadLetter* letter) {
  const std::string& key = message.body;
  Sent& sent = sent_.at(key);
  const std::int64_t effects = effects_of(key);
  if (letter != nullptr) {
    tell(key,
         fmt::format("the broker has the dead letter of {}: {} ({})", message.id, letter->reason, letter->error_class));
    sent.is_dead_letter = true;
    if (!may_be_dead_letter(sent.act)) wrong(key, "is a dead letter although its handler succeeds");
    if (effects > (sent.act == Act::commits ? 1 : 0))
      wrong(key, fmt::format("is a dead letter with {} effects", effects));
    return;
  }
  tell(key, fmt::format("{} is acknowledged", message.id));
  if (sent.is_dead_letter) return;
  if (!may_be_acknowledged(sent.act)) wrong(key, "is acknowledged although its handler cannot succeed");
  if (effects != 1) wrong(key, fmt::format("is acknowledged with {} effects", effects));
}

void World::disturb() {
  auto& threads = *Threads::instance();
  const auto happens = [&](SimTime every, SimTime step) {
    return every > 0s && share(dice()) < static_cast<double>(step.count()) / static_cast<double>(every.count());
  };
  bool has_healed = false;
  while (problem_.empty()) {
    const SimTime step = 20ms;
    threads.sleep_for(step);
    broker_.expel_silent();
    const bool is_quiet = threads.now() > plan_.faults_end;
    for (Service& each : services_) {
      if (!is_quiet && happens(plan_.kill_every * static_cast<int>(services_.size()), step)) {
        tell("", each.process->name() + " is killed");
        threads.kill(*each.process);
        server_.end_sessions(*each.process);
        ++counts_.kills;
      }
      if (!is_quiet && happens(plan_.stop_every * static_cast<int>(services_.size()), step)) {
        const std::chrono::milliseconds time(dice()() % 30'000);
        tell("", fmt::format("{} stops for {} ms", each.process->name(), time.count()));
        threads.stop_until(*each.process, threads.now() + time);
      }
      if (each.process->is_killed() || threads.has_ended(*each.process)) start(each);
    }
    if (!is_quiet && happens(plan_.restart_every, step)) {
      const std::chrono::milliseconds time(dice()() % 5000);
      tell("", fmt::format("the database is away for {} ms", time.count()));
      server_.restart(threads.now() + time);
      ++counts_.restarts;
    }
    if (!is_quiet && happens(plan_.move_every, step)) broker_.move_lane();
    if (is_quiet && !std::exchange(has_healed, true)) {
      server_.faults = {.slowest = plan_.database.slowest};
      broker_.faults = {};
      tell("", "the faults end");
    }
    if (broker_.waiting() == 0) break;
    if (threads.now() > plan_.faults_end + longest_recovery) {
      wrong("", fmt::format("{} are not acknowledged {} after the last fault", broker_.describe_waiting(),
                            std::chrono::duration_cast<std::chrono::minutes>(longest_recovery)));
    }
  }
  check_end();
}

void World::check_end() {
  if (!problem_.empty()) return;
  for (const auto& [key, sent] : sent_) {
    const std::int64_t effects = effects_of(key);
    const bool is_consumed = !sent.is_dead_letter;
    const bool is_right = is_consumed ? effects == 1 : effects == 0 || (sent.act == Act::commits && effects == 1);
    if (!is_right) return wrong(key, fmt::format("has {} effects at the end", effects));
  }
}

}  // namespace txinbox::sim
