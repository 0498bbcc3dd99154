#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include <txinbox/version.hpp>

#include "tables/outbox_message_table.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The messages that were in a call of the publisher that threw, and in no other call since then.
///
/// A message that is alone in such a call is the reason if other messages were published since it was first in one, and
/// if no call throws for which this does not hold. Otherwise the broker may be down.
class Suspects {
 public:
  /// A call has confirmed at least one message.
  void call_succeeded() noexcept {
    ++successes_;
    broker_may_be_down_ = false;
  }

  /// A call with these messages has thrown. Returns whether the only one of them is the reason.
  bool call_threw(std::span<const OutboxRow> rows) {
    for (const OutboxRow& row : rows) {
      Suspect& suspect = by_number_[row.seq];
      if (suspect.id != row.id) suspect = {.id = row.id, .successes = successes_};
    }
    const bool has_reason = rows.size() == 1 && successes_ > by_number_[rows[0].seq].successes && !broker_may_be_down_;
    if (!has_reason) broker_may_be_down_ = true;
    return has_reason;
  }

  /// Returns how often this message was alone in a call that threw, and was not the reason. Counts one more.
  int count_throw(const OutboxRow& row) { return by_number_[row.seq].throws++; }

  void forget(const OutboxRow& row) { by_number_.erase(row.seq); }

  /// Forgets those of the `asked` messages that are not in the table any more.
  void forget_missing(std::span<const OutboxRow> asked, std::span<const OutboxRow> found) {
    if (by_number_.empty()) return;
    std::set<std::string_view> ids;
    for (const OutboxRow& row : found) ids.insert(row.id);
    for (const OutboxRow& row : asked) {
      const auto suspect = by_number_.find(row.seq);
      if (suspect != by_number_.end() && !ids.contains(suspect->second.id)) by_number_.erase(suspect);
    }
  }

 private:
  struct Suspect {
    std::string id = {};          ///< Another message can get the number.
    std::uint64_t successes = 0;  ///< How many calls had succeeded before the first call that threw.
    int throws = 0;
  };

  std::map<std::int64_t, Suspect> by_number_;
  std::uint64_t successes_ = 0;
  bool broker_may_be_down_ = false;  ///< Since the latest success, a call has thrown without a reason.
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
