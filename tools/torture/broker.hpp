#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "torture/dead_letters.hpp"
#include "torture/dice.hpp"
#include "torture/imbalance.hpp"
#include "torture/messages.hpp"
#include "torture/plan.hpp"

namespace txinbox::torture {

/// The broker's record of a key.
struct KeyLedger {
  unsigned outstanding = 0;  ///< Copies that are not yet acknowledged.
  unsigned consumed = 0;     ///< How often a consumer reported `consumed`. Once is right.
  bool is_acknowledged = false;
  std::optional<std::string> stored = {};  ///< The stored result that the consumers reported.
};

/// A broker that delivers at least once. It mixes the copies of several keys. It redelivers messages that were not
/// acknowledged, and sometimes messages that were.
///
/// It is not a process and has no clock: the storm calls it and passes the time.
class Broker {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Tally {
    std::uint64_t deliveries = 0;
    std::uint64_t acknowledged = 0;
    std::uint64_t duplicates = 0;        ///< Answered with already_consumed.
    std::uint64_t in_progress = 0;       ///< Answered with in_progress, and redelivered when due.
    std::uint64_t conflicts = 0;         ///< Answered with conflict, as expected.
    std::uint64_t handler_failures = 0;  ///< The handler failed on purpose.
    std::uint64_t unexpected_failures = 0;
    std::uint64_t lost_with_worker = 0;  ///< A worker that was killed had this delivery.
  };

  /// `window`: how many copies may be outstanding before the next key is sent. `letters`: where parked messages go.
  /// Null: no message may be parked.
  Broker(const Plan& plan, std::size_t window, DeadLetters* letters = nullptr)
      : plan_(plan), window_(window), dice_(plan.seed(), {4}), letters_(letters) {}

  /// Sends keys until the window is full, or until this many keys were sent in all.
  void send(std::uint64_t keys_in_all);

  /// Takes at most this many deliveries that are due.
  std::vector<Arrival> take(std::size_t most, Time now);

  void answered(const Arrival& arrival, const Answer& answer, Time now);
  void lost(const Arrival& arrival);

  /// A dead letter was published again.
  void send_again(const Arrival& arrival);

  /// Ends the sending of keys. Delayed deliveries are due now.
  void close();

  /// Whether everything that was sent is acknowledged.
  bool is_done() const { return unanswered_ == 0 && waiting_.empty() && delayed_.empty(); }

  /// Whether each copy that was sent was acknowledged, or became a dead letter, at least once.
  bool has_settled_all_once() const { return never_settled_ == 0; }

  const std::vector<KeyLedger>& keys() const { return keys_; }
  const Tally& tally() const { return tally_; }

  /// The imbalances that the answers alone show.
  const std::vector<Imbalance>& wrong() const { return wrong_; }

 private:
  void acknowledged(const Arrival& arrival, const Answer& answer, Time now);
  void dead_lettered(const Arrival& arrival, const Answer& answer);
  void settle(const Arrival& arrival);
  void check_stored(const Arrival& arrival, const Answer& answer);
  void add_imbalance(const Arrival& arrival, std::string what, std::string expected, std::string found);

  const Plan& plan_;
  std::size_t window_;
  Dice dice_;
  DeadLetters* letters_;
  std::vector<KeyLedger> keys_;
  std::vector<Arrival> waiting_;
  std::multimap<Time, Arrival> delayed_;
  std::size_t outstanding_ = 0;  // unacknowledged copies, without redeliveries of acknowledged ones
  std::size_t unanswered_ = 0;
  std::size_t never_settled_ = 0;
  std::uint64_t last_key_ = 0;
  bool closed_ = false;
  Tally tally_;
  std::vector<Imbalance> wrong_;
};

}  // namespace txinbox::torture
