#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>

#include <nlohmann/json_fwd.hpp>
#include <txinbox/listener.hpp>
#include <txinbox/source.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {

/// The last report of each `run` of this process about its source.
///
/// A call of `run` is known by its source, its consumer and its thread: two sources can have one name. `run` reports no
/// end. So a source that reports nothing for a long time is `silent`.
///
/// It remembers at most `most` of them. If there are more, it forgets the one that has been silent for the longest
/// time.
///
/// @threads any number.
class Sources final : public Listener {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t most = 1000;

  void on_run_event(const RunEvent& event) override { add(event, Clock::now()); }

  /// As `on_run_event`, at this time.
  void add(const RunEvent&, Clock::time_point now);

  /// The sources, sorted by source and consumer: an array. A silent source is forgotten after an hour, if another one
  /// of the same name and consumer is not silent: `run` has been called again on another thread.
  nlohmann::ordered_json read(Clock::time_point now);

 private:
  using Key = std::tuple<std::string, std::string, std::thread::id>;

  /// A state, and since when.
  struct Mark {
    Clock::time_point at = {};
    std::chrono::system_clock::time_point since = {};
    std::string error_class = {};
  };

  struct Entry {
    std::optional<SourceStatus> status = {};
    std::optional<bool> is_connected = {};  ///< It changes between two statuses, too.
    Clock::time_point status_at = {};
    Clock::duration status_interval{0};  ///< The longest time between two statuses.
    Clock::time_point heard_at = {};
    std::optional<Mark> tripped = {};
    std::optional<Mark> paused = {};
    std::optional<Mark> unavailable = {};
    Clock::time_point unavailable_until = {};  ///< The wait after which `run` tries the database again.
    std::uint64_t held = 0;

    bool is_silent(Clock::time_point now) const;
    bool is_unavailable(Clock::time_point now) const;
  };

  static void change(Entry&, const RunEvent&, Clock::time_point now);
  static nlohmann::ordered_json json_of(const Key&, const Entry&, Clock::time_point now);
  void forget_replaced(Clock::time_point now);

  std::mutex mutex_;
  std::map<Key, Entry> entries_;
};

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
