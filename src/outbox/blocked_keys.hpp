#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <txinbox/version.hpp>

#include "tables/outbox_message_table.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The keys whose next message was read and cannot be published now, and the time until which each of them waits. A
/// message without a key waits alone.
///
/// The relay does not read these messages with the others. It reads them by their keys when their wait is over. So a
/// message that fails costs nothing in between, however many keys fail.
class BlockedKeys {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr std::size_t any_number = std::numeric_limits<std::size_t>::max();

  /// Blocks the key of this row. If the key is blocked already, the new time replaces the old one. `most` bounds the
  /// messages of the call that publishes this one.
  void block(const OutboxRow& row, Time until, std::size_t most = any_number) {
    release(row);
    const std::string name = name_of(row);
    const Turn turn{until, ++blocks_};
    blocked_.emplace(name, Blocked{row.seq, turn, most});
    by_turn_.emplace(turn, name);
  }

  void release(const OutboxRow& row) {
    const auto found = blocked_.find(name_of(row));
    if (found == blocked_.end()) return;
    by_turn_.erase(found->second.turn);
    blocked_.erase(found);
  }

  bool contains(const OutboxRow& row) const { return blocked_.contains(name_of(row)); }

  /// Rows whose wait is over. They have only their number, and their key or the id of a message without a key.
  struct Due {
    std::vector<OutboxRow> rows = {};
    std::size_t most = any_number;  ///< The bound of a call that publishes some of them.
  };

  /// Returns at most `most` rows, those first that have waited longest. All of them have the same bound, and they are
  /// not more than it.
  Due due(Time now, std::size_t most) const {
    Due due;
    for (const auto& [turn, name] : by_turn_) {
      if (turn.first > now || due.rows.size() == std::min(most, due.most)) break;
      const Blocked& blocked = blocked_.at(name);
      if (due.rows.empty()) due.most = blocked.most;
      if (blocked.most != due.most) continue;
      due.rows.push_back({.seq = blocked.seq});
      (name.front() == key_mark ? due.rows.back().key : due.rows.back().id) = name.substr(1);
    }
    return due;
  }

  /// Returns when the next wait ends. Returns `otherwise` if no wait ends before.
  Time next(Time otherwise) const {
    return by_turn_.empty() ? otherwise : std::min(otherwise, by_turn_.begin()->first.first);
  }

 private:
  /// The end of a wait. Waits that end at the same time end in the order in which they began.
  using Turn = std::pair<Time, std::uint64_t>;

  struct Blocked {
    std::int64_t seq;
    Turn turn;
    std::size_t most;
  };

  static constexpr char key_mark = 'k', id_mark = 'i';

  /// A key and an id can be the same text.
  static std::string name_of(const OutboxRow& row) { return row.key.empty() ? id_mark + row.id : key_mark + row.key; }

  std::map<std::string, Blocked> blocked_;
  std::map<Turn, std::string> by_turn_;
  std::uint64_t blocks_ = 0;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
