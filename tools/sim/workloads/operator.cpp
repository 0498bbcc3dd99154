#include "sim/workloads/operator.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <txinbox/failed_messages.hpp>
#include <txinbox/operations.hpp>

#include "base/interruptible_sleep.hpp"

namespace txinbox::sim {

using namespace std::chrono_literals;

namespace {

const OperatorAction by{.actor = "operator", .reason = "the simulation"};

/// The operator looks at the consumers this often.
constexpr SimTime time_between_looks = 1s;

/// How long a consumer may begin messages after a pause. `run` asks the database once a second. Then it may count
/// failures before it begins a message, and the database can be away meanwhile.
constexpr SimTime longest_unnoticed = 20s;

/// How long the operator needs for a decision.
SimTime time_to_decide() { return 2s + std::chrono::milliseconds(threads().any_of(8000)); }

}  // namespace

Operator::Operator(World& world, std::string consumer, std::function<bool(const std::string&)> is_held)
    : world_(world), consumer_(std::move(consumer)), is_held_(std::move(is_held)) {}

void Operator::work(const std::stop_token& stop) {
  while (detail::sleep_for(time_between_looks, stop)) {
    try {
      work_once();
    } catch (const std::exception& error) {
      world_.story.tell("", "the operator gets {}", error.what());
    }
  }
}

void Operator::work_once() {
  if (world_.plan.holds_parked) decide();
  if (is_paused()) {
    if (world_.is_quiet || threads().now() >= resume_at_) resume();
  } else if (!world_.is_quiet && happens_within(time_between_looks, world_.plan.pause_every)) {
    pause();
  }
}

void Operator::pause() {
  const auto length = std::chrono::seconds(5 + threads().any_of(55));
  const bool ends_by_itself = threads().any_of(4) == 0;
  paused_since_.reset();
  resume_at_ = threads().now() + length;
  const ConnectionRef connection = world_.database.connect_caller();
  pause_consumer(connection, consumer_, by, ends_by_itself ? std::optional(length) : std::nullopt);
  if (!ends_by_itself) paused_since_ = threads().now();
  world_.story.tell("", "the consumers are paused for {} s{}", length.count(), ends_by_itself ? ", by the clock" : "");
}

void Operator::resume() {
  paused_since_.reset();
  const ConnectionRef connection = world_.database.connect_caller();
  (void)resume_consumer(connection, consumer_, by);
  world_.story.tell("", "the consumers are resumed");
}

bool Operator::is_paused() {
  return !world_.server
              .query(fmt::format("SELECT 1 FROM txinbox_pause WHERE consumer = '{}' AND (resumes_at IS NULL OR "
                                 "resumes_at > sim_now(0))",
                                 consumer_))
              .empty();
}

std::shared_ptr<Listener> Operator::listener() {
  class BeginListener final : public Listener {
   public:
    explicit BeginListener(Operator& watching) : operator_(watching) {}
    void on_begin(const Scope& scope) override {
      if (scope.kind == ScopeKind::consume) operator_.check_begin(scope.messages.front().business_key);
    }

   private:
    Operator& operator_;
  };
  return std::make_shared<BeginListener>(*this);
}

void Operator::check_begin(const std::string& key) {
  if (!paused_since_) return;
  // A service that was stopped may have asked before.
  const SimTime since = std::max(*paused_since_, threads().stopped_until(threads().current_process()));
  if (threads().now() - since < longest_unnoticed || !is_paused()) return;
  world_.story.wrong(key, "begins although the consumer has been paused for {} s",
                     std::chrono::duration_cast<std::chrono::seconds>(threads().now() - since).count());
}

const Decision& Operator::decision(const std::string& key) const {
  static const Decision none;
  const auto found = decisions_.find(key);
  return found == decisions_.end() ? none : found->second;
}

std::vector<std::string> Operator::parked() const {
  std::vector<std::string> keys;
  for (const auto& [key, decision] : decisions_) {
    if (decision.due == 0s) continue;
    const auto rows = world_.server.query(
        fmt::format("SELECT 1 FROM txinbox_consumed_message WHERE consumer = '{}' AND business_key = '{}' AND state = "
                    "'parked'",
                    consumer_, key));
    if (!rows.empty()) keys.push_back(key);
  }
  return keys;
}

/// The operator looks for messages that are held, and decides about those that are due.
void Operator::decide() {
  std::map<std::string, bool> due;
  std::set<std::string> parked;
  for (const Values& row : world_.server.query(
           fmt::format("SELECT business_key, state FROM txinbox_consumed_message WHERE consumer = '{}' AND state IN "
                       "('parked', 'torn')",
                       consumer_))) {
    const std::string& key = row[0].bytes;
    if (!is_held_(key)) continue;
    parked.insert(key);
    // The decision about a message never changes. A failover can undo it, and then it is made again.
    const auto [found, is_new] = decisions_.try_emplace(key);
    Decision& decision = found->second;
    if (is_new) decision.discards = threads().happens(0.4);
    if (decision.due == 0s) decision.due = threads().now() + time_to_decide();
    if (decision.due <= threads().now()) due.emplace(key, row[1].bytes == "torn");
  }
  for (auto& [key, decision] : decisions_) {
    if (!parked.contains(key)) decision.due = 0s;
  }
  if (due.empty()) return;
  const ConnectionRef connection = world_.database.connect_caller();
  for (const auto& [key, is_torn] : due) decide(connection, key, is_torn, decisions_[key]);
}

void Operator::decide(const ConnectionRef& connection, const std::string& key, bool is_torn, Decision& decision) {
  const FailedFilter filter{
      .consumer = consumer_, .business_key = key, .state = is_torn ? FailedState::torn : FailedState::parked};
  if (is_torn || decision.discards) {
    decision.is_discarded = true;
    world_.story.tell(key, "the operator discards {}", key);
    if (discard_failed(connection, filter, by) > 0) decision.is_discard_done = true;
  } else {
    decision.is_repaired = true;
    world_.story.tell(key, "the operator lets {} run again", key);
    (void)retry_failed(connection, filter, by);
  }
  decision.due = 0s;
  world_.story.tell(key, "the operator has decided about {}", key);
}

}  // namespace txinbox::sim
