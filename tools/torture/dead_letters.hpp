#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "torture/imbalance.hpp"
#include "torture/messages.hpp"
#include "torture/plan.hpp"
#include "torture/redrive_messages.hpp"

namespace txinbox::torture {

/// The dead-letter queue of the storm's broker. It gives each dead letter to one operator at a time. It takes back what
/// an operator held that has ended.
class DeadLetters {
 public:
  struct Tally {
    std::uint64_t added = 0;
    std::uint64_t published = 0;        ///< Dead letters that were published again. Each counts once.
    std::uint64_t published_again = 0;  ///< Further publications, because an operator was killed in between.
    std::uint64_t refused = 0;          ///< Publications that the broker refused on purpose.
    std::uint64_t kept_payloads = 0;    ///< Parked messages without a dead letter: the database keeps their payload.
    std::uint64_t from_outbox = 0;      ///< Messages that were published from such a payload.
    std::uint64_t kills_between = 0;  ///< Operators that were killed after a publication, before they acknowledged it.
  };

  explicit DeadLetters(const Plan& plan) : plan_(plan) {}

  /// A message was parked.
  void add(const Arrival& parked);

  /// Gives the operator at most this many dead letters that nobody holds.
  std::vector<RedriveMessage> take(unsigned holder, std::size_t most);

  /// The operator publishes a message again. Returns the message that the broker must deliver. None: it is refused.
  std::optional<Arrival> publish(unsigned holder, const RedriveMessage& message);

  void acknowledge(unsigned holder, std::uint64_t id);

  /// Whether the operator holds a dead letter that it has published and not acknowledged.
  bool has_unacknowledged(unsigned holder) const;

  /// Takes back all dead letters that the operator holds.
  void give_back(unsigned holder);

  /// As `give_back`, for an operator that was killed.
  void lost(unsigned holder);

  std::size_t size() const { return letters_.size(); }
  const Tally& tally() const { return tally_; }

  /// The imbalances that the calls of the operators alone show.
  const std::vector<Imbalance>& wrong() const { return wrong_; }

 private:
  struct Letter {
    Arrival arrival;
    std::string redrive = {};  ///< The last call of `redrive` that has published it.
    unsigned holder = 0;       ///< 0: nobody.
    bool is_refused = false;
    bool is_published = false;
    bool is_published_by_holder = false;
  };

  std::optional<Arrival> publish_payload(const RedriveMessage& message);
  std::vector<std::pair<std::string, std::string>> headers_of(const Letter& letter) const;
  void add_imbalance(std::string subject, std::string what, std::string expected, std::string found);

  const Plan& plan_;
  std::map<std::uint64_t, Letter> letters_;
  std::deque<std::uint64_t> waiting_;
  std::map<std::pair<std::uint64_t, unsigned>, std::string> redrives_;  // the last redrive of each copy
  std::uint64_t last_id_ = 0;
  Tally tally_;
  std::vector<Imbalance> wrong_;
};

}  // namespace txinbox::torture
