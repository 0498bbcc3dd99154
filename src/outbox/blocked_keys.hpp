#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
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

  /// Blocks the key of this row. If the key is blocked already, the new time replaces the old one.
  void block(const OutboxRow& row, Time until) {
    release(row);
    const std::string name = name_of(row);
    blocked_.emplace(name, Blocked{row.seq, until});
    by_time_.emplace(until, name);
  }

  void release(const OutboxRow& row) {
    const auto found = blocked_.find(name_of(row));
    if (found == blocked_.end()) return;
    by_time_.erase({found->second.until, found->first});
    blocked_.erase(found);
  }

  bool contains(const OutboxRow& row) const { return blocked_.contains(name_of(row)); }

  /// Returns the rows that were blocked and whose wait is over, at most `most`. Those that have waited longest come
  /// first. They have only their number, and their key or the id of a message without a key.
  std::vector<OutboxRow> due(Time now, std::size_t most) const {
    std::vector<OutboxRow> rows;
    for (const auto& [until, name] : by_time_) {
      if (until > now || rows.size() == most) break;
      rows.push_back({.seq = blocked_.at(name).seq});
      (name.front() == key_mark ? rows.back().key : rows.back().id) = name.substr(1);
    }
    return rows;
  }

  /// Returns when the next wait ends. Returns `otherwise` if no wait ends before.
  Time next(Time otherwise) const {
    return by_time_.empty() ? otherwise : std::min(otherwise, by_time_.begin()->first);
  }

 private:
  struct Blocked {
    std::int64_t seq;
    Time until;
  };

  static constexpr char key_mark = 'k', id_mark = 'i';

  /// A key and an id can be the same text.
  static std::string name_of(const OutboxRow& row) { return row.key.empty() ? id_mark + row.id : key_mark + row.key; }

  std::map<std::string, Blocked> blocked_;
  std::set<std::pair<Time, std::string>> by_time_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
