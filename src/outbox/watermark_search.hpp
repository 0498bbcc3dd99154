#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tables/outbox_message_table.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Finds the watermark of a relay: the relay knows all rows up to it, and no transaction can add another one. So a read
/// looks for earlier rows of a key only behind it. It is the low watermark of stream processing. It only saves time.
///
/// A database numbers a row when it is inserted, and others see the row after the commit. When the relay has read a
/// row, all numbers up to this row are given. The rows that it has not read belong to transactions that are still open,
/// or that were rolled back. So the search remembers a position that was read, and the transactions that are open then.
/// When all of them have ended, it lists the rows up to that position. Then the position is the watermark.
class WatermarkSearch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  const Watermark& found() const noexcept { return found_; }

  /// Forgets the watermark, but not the server.
  void start_over() noexcept {
    found_.seq = candidate_ = 0;
    listing_ = false;
  }

  /// Whether to read which transactions are open: at first, so that the server is known, and then behind many rows.
  /// `position`: the relay has read a row with this number or a greater one.
  bool must_read_writers(std::int64_t position, Time now) const noexcept {
    constexpr std::int64_t many = 1'000;
    return is_possible_ && !listing_ && now >= next_ && (found_.server == 0 || position - found_.seq > many);
  }

  /// These transactions were open when the relay had read `position`. None: the database cannot tell. Returns false if
  /// this is another server than before. Then the position proves nothing: that server may give its numbers again.
  bool take(std::optional<OutboxWriters> writers, std::int64_t position, Time now) {
    constexpr std::chrono::seconds interval(1);
    next_ = now + interval;
    is_possible_ = writers.has_value();
    if (!writers) return true;
    if (writers->server != found_.server) {
      start_over();
      found_.server = writers->server;
      return false;
    }
    if (candidate_ == 0) {
      candidate_ = position;
      open_ = std::move(writers->transactions);
    } else {
      std::erase_if(open_, [&](const std::string& each) { return !std::ranges::count(writers->transactions, each); });
    }
    listing_ = open_.empty() && !writers->has_prepared;
    listed_ = found_.seq;
    return true;
  }

  /// Whether to list rows: those behind `listed`, up to `candidate`.
  bool must_list() const noexcept { return listing_; }
  std::int64_t listed() const noexcept { return listed_; }
  std::int64_t candidate() const noexcept { return candidate_; }

  /// The relay knows the rows that were listed. The last one is `last`. `all`: there were no more rows.
  void advance(std::int64_t last, bool all) noexcept {
    listed_ = last;
    if (!all) return;
    found_.seq = std::exchange(candidate_, 0);
    listing_ = false;
  }

 private:
  bool is_possible_ = true;
  Watermark found_;
  std::int64_t candidate_ = 0;     ///< The next watermark. 0: there is none.
  std::vector<std::string> open_;  ///< Transactions that can add rows up to `candidate_`.
  bool listing_ = false;
  std::int64_t listed_ = 0;
  Time next_{};
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
