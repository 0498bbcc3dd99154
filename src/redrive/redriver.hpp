#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <txinbox/pool.hpp>
#include <txinbox/redrive.hpp>
#include <txinbox/version.hpp>

#include "redrive/dead_letter_info.hpp"
#include "redrive/left_letters.hpp"
#include "redrive/message_release.hpp"
#include "run/idle_exit.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// One call of `redrive`.
///
/// Invariants:
/// - A dead letter is acknowledged only after the broker has confirmed the message, and after all earlier dead letters
///   of its lane. So an acknowledgement never covers one that was left.
/// - A message can run again in the database before it is published.
class Redriver {
 public:
  /// Errors: `Error` invalid_argument for the options.
  Redriver(Source& source, const Republisher& publish, Pool& pool, const RedriveOptions& options);

  RedriveSummary run();

 private:
  using Clock = std::chrono::steady_clock;

  /// A dead letter of the batch that is worked on.
  struct Letter {
    Letter(Incoming the_incoming, const RedriveOptions& options)
        : incoming(std::move(the_incoming)), info(incoming, options) {}

    Incoming incoming;
    DeadLetterInfo info;
    bool can_run = false;  ///< The database lets the message run.
    bool is_published = false;
    bool is_acknowledged = false;
    std::string why_left = {};
    std::optional<Clock::time_point> fails_since = {};

    bool is_open() const noexcept { return !is_published && why_left.empty(); }
  };
  using Letters = std::vector<std::unique_ptr<Letter>>;

  void work_until_end();
  std::size_t room() const;
  std::size_t held() const;
  bool ends();
  void work(std::vector<Incoming> incoming);
  void work_once(Letters& letters);
  void let_run(Letters& letters);
  void let_run(Connection& connection, Letter& letter);
  void publish(const std::vector<Letter*>& letters);
  void take_result(Letter& letter, const PublishResult& result);
  void forget_failures(const std::vector<Letter*>& letters);
  static bool fails_too_long(Letter& letter);
  void acknowledge(Letters& letters);
  void leave(Letter& letter, std::string why);
  void forget_lost();
  void wait(std::chrono::milliseconds time);
  void wait_for_rate();
  void write_audit(std::string_view action);
  void note(const SourceEvent& event);
  void tell(RedriveEventType type, const Letter& letter, std::string_view text = {}) const;
  void tell_waiting(std::string_view text);

  Source& source_;
  const Republisher& publish_;
  Pool& pool_;
  const RedriveOptions& options_;
  const std::string redrive_;  ///< Identifies this call.
  MessageRelease release_;
  IdleExit idle_exit_;
  LeftLetters left_;
  std::map<std::string, Clock::time_point, std::less<>> failing_destinations_;
  bool may_have_lost_ = false;                    ///< The source has reported that messages were taken back.
  std::optional<Clock::time_point> stuck_since_;  ///< Since when nothing was published, and no letter was left.
  std::size_t left_now_ = 0;                      ///< How often a letter was left.
  std::size_t published_ = 0;                     ///< Since the last wait for the rate.
  Clock::time_point next_batch_ = Clock::now();
  Clock::time_point next_waiting_event_{};
  RedriveSummary summary_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
