#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <txinbox/version.hpp>

#include "outbox/blocked_keys.hpp"
#include "tables/outbox_message_table.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The read of blocked keys whose wait is over.
///
/// The rows of a few keys can be as many as one read returns. Then the read says nothing about the other keys that it
/// asked for. These stay blocked, and the next read asks only for them. Otherwise, keys with many rows that fail again
/// and again could be read each time, and the other keys never.
class DueRead {
 public:
  using Time = BlockedKeys::Time;

  /// Chooses at most `limit` rows whose wait is over. Returns false if there are none.
  bool start(const BlockedKeys& blocked, Time now, std::size_t limit) {
    asked_ = unread_.rows.empty() ? blocked.due(now, limit) : std::exchange(unread_, {});
    keys_.clear();
    numbers_.clear();
    for (const OutboxRow& row : asked_.rows) {
      if (row.key.empty()) {
        numbers_.push_back(row.seq);
      } else {
        keys_.push_back(row.key);
      }
    }
    running_ = !asked_.rows.empty();
    return running_;
  }

  /// The queries for the chosen rows. They refer to this object.
  std::vector<OutboxQuery> queries(const std::set<int>& parts, std::size_t limit) const {
    std::vector<OutboxQuery> queries;
    if (!keys_.empty()) queries.push_back({.parts = parts, .keys = keys_, .limit = limit});
    if (!numbers_.empty()) queries.push_back({.parts = parts, .rows = numbers_, .limit = limit});
    return queries;
  }

  bool is_running() const noexcept { return running_; }

  /// The database has failed. The chosen rows are still blocked.
  void fail() noexcept { running_ = false; }

  /// The chosen rows. Of a message without a key, they have the id.
  std::span<const OutboxRow> asked() const noexcept { return asked_.rows; }

  /// The read has returned these rows. `all`: there are no more. Releases the chosen rows that the read says something
  /// about.
  void finish(std::span<const OutboxRow> found, bool all, BlockedKeys& blocked) {
    running_ = false;
    if (!all) set_unread_aside(found);
    for (const OutboxRow& row : asked_.rows) blocked.release(row);
    if (all) asked_.rows.clear();
  }

  /// The rows that were found are handled. If there can be more rows of their keys, these are due again.
  void end(BlockedKeys& blocked, Time now) {
    for (const OutboxRow& row : std::exchange(asked_.rows, {})) {
      if (!blocked.contains(row)) blocked.block(row, now, asked_.most);
    }
  }

 private:
  void set_unread_aside(std::span<const OutboxRow> found) {
    std::set<std::string_view> keys;
    std::set<std::int64_t> numbers;
    for (const OutboxRow& row : found) {
      keys.insert(row.key);
      numbers.insert(row.seq);
    }
    const auto is_read = [&](const OutboxRow& row) {
      return row.key.empty() ? numbers.contains(row.seq) : keys.contains(row.key);
    };
    const auto unread = std::stable_partition(asked_.rows.begin(), asked_.rows.end(), is_read);
    unread_ = {.rows = {unread, asked_.rows.end()}, .most = asked_.most};
    asked_.rows.erase(unread, asked_.rows.end());
  }

  BlockedKeys::Due asked_;
  BlockedKeys::Due unread_;  ///< Rows that the latest read was to return, and did not reach.
  std::vector<std::string> keys_;
  std::vector<std::int64_t> numbers_;  ///< Of messages without a key.
  bool running_ = false;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
