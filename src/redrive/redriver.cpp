#include "redrive/redriver.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

#include <txinbox/error.hpp>
#include <txinbox/schema.hpp>

#include "backend/connection_access.hpp"
#include "base/token.hpp"
#include "pool/inbox_session.hpp"
#include "tables/audit_table.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

/// The most dead letters that are published with one call. Most of them come twice if the process is killed.
constexpr std::size_t most_at_once = 100;
constexpr std::size_t most_left_bytes = 512UL * 1024 * 1024;
constexpr milliseconds poll_time = 200ms;
constexpr milliseconds pause_after_failure = 500ms;
/// After this time without progress, the broker or the database counts as unreachable.
constexpr auto longest_wait = 2min;

RedriveEnd end_of(RunEnd end) {
  switch (end) {
    case RunEnd::unreachable:
      return RedriveEnd::unreachable;
    case RunEnd::not_at_end:
      return RedriveEnd::not_at_end;
    default:
      return RedriveEnd::at_end;
  }
}

}  // namespace

Redriver::Redriver(Source& source, const Republisher& publish, Pool& pool, const RedriveOptions& options)
    : source_(source),
      publish_(publish),
      pool_(pool),
      options_(options),
      redrive_(Token::random().hex()),
      release_(options),
      idle_exit_(options.idle_exit, Clock::now()) {
  const auto require = [](bool holds, const char* text) {
    if (!holds) throw Error(ErrorCode::invalid_argument, text);
  };
  require(static_cast<bool>(publish), "the republisher is empty");
  require(options.rate >= 0, "RedriveOptions::rate must not be negative");
  require(options.max_redrives > 0, "RedriveOptions::max_redrives must be at least 1");
  require(options.max_left > 0, "RedriveOptions::max_left must be at least 1");
  require(options.idle_exit > 0ms && options.idle_exit <= std::chrono::days(1),
          "RedriveOptions::idle_exit must be positive and at most a day");
}

RedriveSummary Redriver::run() {
  {
    Connection connection = pool_.acquire(options_.stop);
    verify(connection);
  }
  write_audit("redrive_begin");
  // The source must not call this object after its end.
  struct Observed {
    Source& source;
    ~Observed() {
      source.close();
      source.on_event({});
    }
  };
  try {
    const Observed observed{source_};
    source_.on_event([this](const SourceEvent& event) { note(event); });
    work_until_end();
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    if (summary_.redriven > 0) {
      try {
        write_audit("redrive");
      } catch (...) {  // NOLINT(bugprone-empty-catch): the caller gets the first error
      }
    }
    std::rethrow_exception(error);
  }
  write_audit("redrive");
  summary_.left = left_.count();
  summary_.why = left_.reasons();
  return summary_;
}

void Redriver::write_audit(std::string_view action) {
  if (!options_.by || options_.dry_run) return;
  Connection connection = pool_.acquire();
  const ConnectionRef reference(connection);
  const InboxSession session(ConnectionAccess::of(reference), options_.by);
  add_audit_row(*session, {.by = options_.by, .action = action, .consumer = options_.consumer}, summary_.redriven,
                backend::TransactionUse::own);
}

void Redriver::note(const SourceEvent& event) {
  if (event.type == SourceEventType::disconnected || event.type == SourceEventType::lanes_revoked)
    may_have_lost_ = true;
  if (options_.observer) options_.observer({.type = RedriveEventType::source, .text = event.text});
}

void Redriver::work_until_end() {
  while (!ends()) {
    std::vector<Incoming> incoming = source_.poll(room(), std::min(poll_time, options_.idle_exit));
    forget_lost();
    if (!incoming.empty()) {
      work(std::move(incoming));
      idle_exit_.busy(Clock::now());
    } else if (const auto end = idle_exit_.polled_nothing(source_.status(), Clock::now())) {
      summary_.end = end_of(*end);
      return;
    }
  }
  forget_lost();
}

/// How many dead letters may be polled.
std::size_t Redriver::room() const {
  constexpr double batches_in_a_second = 5;
  std::size_t room = std::min(most_at_once, options_.max_left - held());
  if (options_.max != 0) room = std::min(room, options_.max - summary_.redriven);
  if (options_.rate > 0 && options_.rate / batches_in_a_second < static_cast<double>(room)) {
    room = std::max<std::size_t>(1, static_cast<std::size_t>(options_.rate / batches_in_a_second));
  }
  return room;
}

/// How many dead letters the source holds that are not worked on. A dry run acknowledges none.
std::size_t Redriver::held() const { return left_.count() + (options_.dry_run ? summary_.redriven : 0); }

bool Redriver::ends() {
  if (options_.stop.stop_requested()) {
    summary_.end = RedriveEnd::stopped;
  } else if (options_.max != 0 && summary_.redriven >= options_.max) {
    summary_.end = RedriveEnd::limit;
  } else if (held() >= options_.max_left || left_.bytes() >= most_left_bytes) {
    summary_.end = RedriveEnd::too_many_left;
  } else if (stuck_since_ && Clock::now() - *stuck_since_ >= longest_wait) {
    summary_.end = RedriveEnd::unreachable;
  } else {
    return false;
  }
  return true;
}

void Redriver::work(std::vector<Incoming> incoming) {
  Letters letters;
  letters.reserve(incoming.size());
  for (Incoming& each : incoming) letters.push_back(std::make_unique<Letter>(std::move(each), options_));
  for (const auto& letter : letters) {
    if (auto why = letter->info.why_left(options_, redrive_); !why.empty()) leave(*letter, std::move(why));
  }
  while (!ends()) {
    std::erase_if(letters, [this](const auto& letter) { return !source_.holds(letter->incoming); });
    if (std::ranges::none_of(letters, [](const auto& letter) { return letter->is_open(); })) break;
    const std::size_t before = summary_.redriven + left_now_;
    work_once(letters);
    acknowledge(letters);
    wait_for_rate();
    if (summary_.redriven + left_now_ > before) {
      stuck_since_.reset();
    } else if (!stuck_since_) {
      stuck_since_ = Clock::now();
    }
    if (std::ranges::any_of(letters, [](const auto& letter) { return letter->is_open(); })) wait(pause_after_failure);
  }
  acknowledge(letters);
  for (auto& letter : letters) {
    if (!letter->why_left.empty()) left_.add(std::move(letter->incoming), std::move(letter->why_left));
  }
}

/// Makes one attempt for the open letters.
void Redriver::work_once(Letters& letters) {
  let_run(letters);
  std::vector<Letter*> ready;
  for (const auto& letter : letters) {
    if (letter->is_open() && letter->can_run) ready.push_back(letter.get());
  }
  if (!options_.dry_run) {
    if (!ready.empty()) publish(ready);
    return;
  }
  for (Letter* const letter : ready) {
    ++summary_.redriven;
    letter->is_published = true;
    tell(RedriveEventType::would_redrive, *letter);
  }
}

void Redriver::acknowledge(Letters& letters) {
  if (options_.dry_run) return;
  auto closed = left_.lanes();  // the lanes with a dead letter that is not published
  std::vector<const Incoming*> done;
  for (const auto& letter : letters) {
    const auto lane = letter->incoming.lane;
    if (!letter->is_published && lane) closed.insert(*lane);
    if (!letter->is_published || letter->is_acknowledged || (lane && closed.contains(*lane))) continue;
    letter->is_acknowledged = true;
    done.push_back(&letter->incoming);
  }
  if (!done.empty()) source_.acknowledge(done);
}

void Redriver::leave(Letter& letter, std::string why) {
  letter.why_left = std::move(why);
  ++left_now_;
  tell(RedriveEventType::left, letter, letter.why_left);
}

void Redriver::forget_lost() {
  if (std::exchange(may_have_lost_, false)) left_.forget_lost(source_);
}

/// Waits, and lets the source do what it must do regularly.
void Redriver::wait(milliseconds time) {
  const auto until = Clock::now() + time;
  while (!options_.stop.stop_requested() && Clock::now() < until) {
    (void)source_.poll(0, std::min(poll_time, std::chrono::ceil<milliseconds>(until - Clock::now())));
  }
}

void Redriver::wait_for_rate() {
  const std::size_t published = std::exchange(published_, 0);
  if (options_.rate <= 0 || published == 0) return;
  const std::chrono::duration<double> needed(static_cast<double>(published) / options_.rate);
  next_batch_ = std::max(next_batch_, Clock::now()) + std::chrono::duration_cast<Clock::duration>(needed);
  wait(std::chrono::ceil<milliseconds>(next_batch_ - Clock::now()));
}

void Redriver::tell(RedriveEventType type, const Letter& letter, std::string_view text) const {
  if (!options_.observer) return;
  options_.observer({.type = type,
                     .consumer = letter.info.consumer,
                     .business_key = letter.info.business_key,
                     .reason = letter.info.reason,
                     .error_class = letter.info.error_class,
                     .id = letter.incoming.id,
                     .destination = letter.info.destination,
                     .text = text});
}

void Redriver::tell_waiting(std::string_view text) {
  constexpr auto between = 5s;
  if (Clock::now() < next_waiting_event_) return;
  next_waiting_event_ = Clock::now() + between;
  if (options_.observer) options_.observer({.type = RedriveEventType::waiting, .text = text});
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
