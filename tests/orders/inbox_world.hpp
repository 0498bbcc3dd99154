#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/lease_consumer.hpp>
#include <txinbox/pool.hpp>
#include <txinbox/tx_consumer.hpp>

#include "orders/scripted_database.hpp"

namespace txinbox::test {

/// The act of a handler, besides its one effect.
enum class InboxAct {
  succeeds,
  stores,         ///< It stores a result.
  refuses,        ///< It refuses the message.
  fails,          ///< It throws an error that counts.
  postpones,      ///< It throws `RetryLater`, twice. Then it succeeds.
  wraps,          ///< It throws an exception of its own if a statement fails.
  goes_back,      ///< It rolls back to a savepoint of its own, and goes on.
  swallows,       ///< It continues if a statement fails.
  commits,        ///< It commits the transaction.
  commits_later,  ///< It fails. When it runs again, it commits the transaction.
  restarts,       ///< It commits the transaction and begins another one.
  rolls_back,     ///< It rolls the transaction back, and ends.
  works_outside,  ///< It rolls the transaction back, and commits its effect in a transaction of its own.
  forgets,        ///< It deletes the claim.
  renews,         ///< It renews its lease. Only under a lease.
};

/// The acts that a handler can do in the consumer's transaction, and under a lease.
inline constexpr std::array acts_in_transaction = {
    InboxAct::succeeds, InboxAct::stores,     InboxAct::refuses,       InboxAct::fails,   InboxAct::postpones,
    InboxAct::wraps,    InboxAct::goes_back,  InboxAct::swallows,      InboxAct::commits, InboxAct::commits_later,
    InboxAct::restarts, InboxAct::rolls_back, InboxAct::works_outside, InboxAct::forgets};
inline constexpr std::array acts_under_lease = {InboxAct::succeeds, InboxAct::stores, InboxAct::fails,
                                                InboxAct::postpones, InboxAct::renews};

std::string_view to_string(InboxAct) noexcept;

/// How the messages are delivered.
enum class InboxMode {
  one,            ///< `consume`.
  counts_starts,  ///< `consume` with `count_starts`.
  claim_wait,     ///< `consume` with `claim_wait`.
  valid_for,      ///< `consume`, with a `valid_for` of 1 ms.
  lease,          ///< `LeaseConsumer::consume`. The handler's effect is in a transaction of its own.
  each,           ///< `consume_batch` with a handler for one message.
  each_stops,     ///< The same, with `OnFailure::stop`.
  at_once,        ///< `consume_batch` with a handler for the whole batch.
  pair,           ///< `consume_batch` with both handlers.
};

std::string_view to_string(InboxMode) noexcept;

constexpr bool is_batch(InboxMode mode) { return mode >= InboxMode::each; }

/// Two processes that consume the same messages. The broker delivers a message again until it is acknowledged, to each
/// process in turn. The world checks what the deliveries return against the rows and the effects.
class InboxWorld {
 public:
  /// A batch has three messages: `act` is the second one's.
  InboxWorld(ScriptedDatabase& database, InboxMode mode, InboxAct act);

  /// Runs the deliveries to which these twists happen. Returns what went wrong; empty if nothing did.
  std::string run(std::vector<SqlTwistAt> twists);

 private:
  struct Sent {
    std::string key;
    InboxAct act;
    int runs = 0;     ///< How often its handler has run.
    int unknown = 0;  ///< How often the handler's own COMMIT had no reply.
    int deliveries = 0;
    int consumed = 0;   ///< How often a delivery has consumed it.
    int torn = 0;       ///< How often a listener has heard that it is torn.
    bool done = false;  ///< It was acknowledged, or published to the dead-letter queue.
    std::int64_t effects = 0;
    std::string end = {};  ///< The result of the last delivery.
  };
  struct Process {
    std::shared_ptr<detail::PoolState> state;
    std::unique_ptr<Pool> pool;
    std::unique_ptr<TxConsumer> consumer;
    std::unique_ptr<LeaseConsumer> lease_consumer;
  };

  /// Whether a handler gets the whole batch.
  bool is_set() const { return mode_ == InboxMode::at_once || mode_ == InboxMode::pair; }

  void start_process(Process&);
  void deliver(Process&);
  void deliver_one(Process&, Sent&);
  void deliver_batch(Process&);
  Sent& sent_of(std::string_view key);
  void handle(::sqlite3*, Delivery&);
  void handle(Lease&);
  bool is_apart(const Sent&) const;
  void end(Sent&, const Result&);
  void check_end(const Sent&, const Result&);
  void check_heard(const Sent&);
  void check(const Sent&);
  void wrong(const Sent&, const std::string&);
  std::int64_t effects_of(const Sent&) const;
  bool has_row(const Sent&, const std::string& condition) const;

  ScriptedDatabase& database_;
  const InboxMode mode_;
  const InboxAct act_;
  std::array<Process, 2> processes_;
  std::vector<Sent> sent_;
  std::string problem_;
  bool is_disturbed_ = false;        ///< The script has a twist.
  bool is_disturbed_twice_ = false;  ///< It has two.
};

/// Tries each way in which up to `count` twists can happen to messages with each of these acts. Each way in which
/// something goes wrong is a failed check that names the twists. Returns how many ways it has tried.
int try_inbox_orders(CommitRule, InboxMode, std::span<const InboxAct>, int count);

}  // namespace txinbox::test
