#pragma once

// Services that consume the messages of a broker with `TxConsumer` and `run`.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <sqlite3.h>
#include <txinbox/delivery.hpp>

#include "sim/workload.hpp"
#include "sim/workloads/eraser.hpp"
#include "sim/workloads/feed.hpp"
#include "sim/workloads/handler_act.hpp"
#include "sim/workloads/operator.hpp"
#include "sim/workloads/publishing.hpp"

namespace txinbox::sim {

class Consuming final : public Workload {
 public:
  /// `publishing` publishes what the handlers add to the outbox. Null: they add nothing.
  Consuming(World&, Publishing* publishing);

  std::vector<std::string> services() const override;
  void serve(std::size_t service, const std::stop_token&) override;
  void step() override;
  std::optional<Waiting> waiting(bool stuck) override;
  SimTime longest_decisions() const override;
  void check_end() override;
  std::uint64_t deliveries() const noexcept override { return feed_.broker().deliveries(); }

 private:
  using Act = HandlerAct;

  struct Sent {
    Act act = Act::succeeds;
    bool can_succeed = true;    ///< Its handler returns at last, and has its effect then.
    bool commits = false;       ///< Its handler commits the claims of its batch, or its effect without its claim.
    std::string sequence = {};  ///< The messages whose order must be kept. Empty: the message has no order.
    std::size_t position = 0;   ///< In the sequence.
    bool has_order = false;
    SimTime sent_at = threads().now();
    int runs = 0;
    bool is_dead_letter = false;

    /// Its handler succeeds now, although it failed always before.
    bool is_repaired = false;

    /// The handler of another message of its batch has committed its claim, and perhaps its effect.
    bool is_hurt = false;

    /// The same, before its own handler ran. The library removes the claim again. A failover can lose this, and the end
    /// of the service can come first.
    bool is_claim_committed = false;

    /// How often a delivery of it met a full disk, and `run` has suspected the message. If other messages are consumed
    /// in between, this counts as its failure. It counts again if the answer to the statement that counts is lost. The
    /// same is true of a lost connection: on SQLite it is an I/O error, after which `consume` does not try again.
    int refusals = 0;

    /// Whether these may have parked it. Each of them, and one failure of its own, may have counted twice.
    bool may_have_failed(int most) const noexcept { return most > 0 && refusals > 0 && 2 * (refusals + 1) >= most; }

    /// How many effects it has when it is acknowledged.
    std::size_t right_effects() const noexcept { return act == Act::refuses ? 0 : 1; }
    bool may_be_acknowledged() const noexcept { return can_succeed || act == Act::swallows || is_repaired; }

    /// How many effects it can have although its claim was not consumed. A handler that commits its effect without its
    /// claim can do so in each run.
    std::size_t most_torn_effects() const noexcept {
      if (act == Act::commits_another && commits) return static_cast<std::size_t>(runs);
      return commits || is_hurt ? 1 : 0;
    }
  };

  void consume(const std::stop_token&);
  bool add(const Placed&);
  void note_refusal(const RunEvent&);
  void handle(::sqlite3*, Delivery&, std::span<const Delivery> set);
  Act act_now(const std::string& key, Sent&) const;
  void end_of(const BrokerMessage&, const DeadLetter*);
  void hurt_batch_of(::sqlite3*, std::span<const Delivery> set);
  bool has_abandoned_claim(const std::string& key) const;
  bool may_be_dead_letter(const std::string& key, const Sent&) const;
  bool is_held(const Sent&) const noexcept;
  void check_begin(const std::string& key, const Sent&);
  bool has_right_effects(const std::string& key, const Sent&, std::size_t effects) const;
  bool may_be_left(const Sent&, std::size_t effects) const;
  bool may_be_late(const std::string& key) const;
  void check_order();

  Publishing* const publishing_;
  Feed feed_;
  std::map<std::string, Sent> sent_;
  Operator operator_;
  Eraser eraser_;
  std::map<std::uint64_t, std::vector<std::string>> ran_in_;  ///< The keys whose handlers have run in a transaction.

  /// The services whose handlers have committed claims, by the claims' tokens.
  std::map<std::string, std::shared_ptr<Process>> committed_claims_;
  std::map<std::string, std::size_t> positions_;  ///< How many messages each sequence has.
};

}  // namespace txinbox::sim
