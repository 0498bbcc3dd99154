#include "redrive/redriver.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <set>
#include <utility>

#include <txinbox/error.hpp>
#include <txinbox/failed_messages.hpp>
#include <txinbox/inspect.hpp>
#include <txinbox/pool.hpp>
#include <txinbox/result.hpp>
#include <txinbox/schema.hpp>

#include "base/token.hpp"
#include "types/enum_names.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

constexpr detail::EnumNames<RedriveEventType, RedriveEventType::source> type_names("redriven", "would_redrive", "left",
                                                                                   "waiting", "source");
constexpr detail::EnumNames<RedriveEnd, RedriveEnd::not_at_end> end_names("at_end", "stopped", "limit", "too_many_left",
                                                                          "unreachable", "not_at_end");

}  // namespace

std::string_view to_string(RedriveEventType type) noexcept { return type_names[type]; }
std::string_view to_string(RedriveEnd end) noexcept { return end_names[end]; }

RedriveSummary redrive(Source& source, const Republisher& publish, Pool& pool, const RedriveOptions& options) {
  return detail::Redriver(source, publish, pool, options).run();
}

namespace detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

/// The most dead letters that are published with one call. Most of them come twice if the process is killed.
constexpr std::size_t largest_batch = 100;
constexpr std::size_t most_left_bytes = 512UL * 1024 * 1024;
constexpr milliseconds poll_time = 200ms;
constexpr milliseconds pause_after_failure = 500ms;
/// A broker that has just started can refuse a message for a few seconds.
constexpr auto patience = 10s;

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
  source_.on_event([this](const SourceEvent& event) {
    if (event.type == SourceEventType::disconnected || event.type == SourceEventType::lanes_revoked) {
      may_have_lost_ = true;
    }
    if (options_.observer) options_.observer({.type = RedriveEventType::source, .text = event.text});
  });
  while (!ends()) {
    std::vector<Incoming> incoming = source_.poll(room(), std::min(poll_time, options_.idle_exit));
    forget_lost();
    const auto now = Clock::now();
    if (!incoming.empty()) {
      idle_exit_.busy(now);
      work(std::move(incoming));
    } else if (const auto end = idle_exit_.polled_nothing(source_.status(), now)) {
      summary_.end = end_of(*end);
      break;
    }
  }
  forget_lost();
  source_.close();
  source_.on_event({});
  summary_.left = left_.size();
  for (const Left& each : left_) ++summary_.why[each.why];
  return summary_;
}

/// How many dead letters may be polled.
std::size_t Redriver::room() const {
  constexpr double batches_in_a_second = 5;
  std::size_t room = std::min(largest_batch, options_.max_left - left_.size());
  if (options_.max != 0) room = std::min(room, options_.max - summary_.redriven);
  if (options_.rate > 0 && options_.rate / batches_in_a_second < static_cast<double>(room)) {
    room = std::max<std::size_t>(1, static_cast<std::size_t>(options_.rate / batches_in_a_second));
  }
  return room;
}

bool Redriver::ends() {
  if (options_.stop.stop_requested()) {
    summary_.end = RedriveEnd::stopped;
  } else if (options_.max != 0 && summary_.redriven >= options_.max) {
    summary_.end = RedriveEnd::limit;
  } else if (left_.size() >= options_.max_left || left_bytes_ >= most_left_bytes) {
    summary_.end = RedriveEnd::too_many_left;
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
  while (!options_.stop.stop_requested()) {
    std::erase_if(letters, [this](const auto& letter) { return !source_.holds(letter->incoming); });
    if (std::ranges::none_of(letters, [](const auto& letter) { return letter->is_open(); })) break;
    const bool goes_on = work_once(letters);
    acknowledge(letters);
    if (!goes_on) wait(pause_after_failure);
  }
  acknowledge(letters);
  for (auto& letter : letters) {
    if (letter->why_left.empty()) continue;
    left_bytes_ += letter->incoming.body.size();
    left_.push_back({std::move(letter->incoming), std::move(letter->why_left)});
  }
}

/// Makes one attempt for the open letters. Returns false if the next attempt must wait.
bool Redriver::work_once(Letters& letters) {
  if (!let_run(letters)) return false;
  std::vector<Letter*> open;
  for (const auto& letter : letters) {
    if (letter->is_open()) open.push_back(letter.get());
  }
  if (!options_.dry_run) return open.empty() || publish(open);
  for (Letter* const letter : open) {
    ++summary_.redriven;
    letter->is_published = true;
    tell(RedriveEventType::would_redrive, *letter);
  }
  return true;
}

/// Lets the messages of the open letters run again in the database. Returns false if the database cannot be used now.
bool Redriver::let_run(Letters& letters) {
  const auto needs = [](const auto& letter) { return letter->is_open() && !letter->can_run; };
  if (std::ranges::none_of(letters, needs)) return true;
  try {
    Connection connection = pool_.acquire(options_.stop);
    for (const auto& letter : letters) {
      if (!needs(letter)) continue;
      if (auto why = let_run(connection, letter->info); !why.empty()) leave(*letter, std::move(why));
      letter->can_run = true;
    }
    return true;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {
    if (options_.stop.stop_requested()) return false;
    if (!is_transient(std::current_exception())) throw;
    tell_waiting(describe_error(std::current_exception()));
    return false;
  }
}

/// Returns why the message cannot run again; empty if it can.
std::string Redriver::let_run(Connection& connection, const DeadLetterInfo& info) {
  auto known = known_consumers_.find(info.consumer);
  if (known == known_consumers_.end()) {
    known = known_consumers_.emplace(info.consumer, has_consumer(connection, info.consumer)).first;
  }
  if (!known->second) return "nothing is recorded for its consumer in this database";
  if (info.business_key.empty()) return {};  // it could not be read, so the database knows nothing about it
  const auto found = find_message(connection, info.consumer, info.business_key);
  if (found && found->state == "torn") return "its message is torn: repair the data, then forget the message";
  if (found && found->state == "discarded") return "its message is discarded; forget the message to let it run";
  if (!options_.dry_run) {
    (void)retry_failed(connection, {.consumer = std::string(info.consumer), .business_key = info.business_key});
  }
  return {};
}

/// Publishes these letters. Returns false if the next attempt must wait.
bool Redriver::publish(const std::vector<Letter*>& letters) {
  std::vector<Republication> messages;
  messages.reserve(letters.size());
  for (Letter* const letter : letters) {
    messages.push_back({.incoming = &letter->incoming,
                        .destination = std::string(letter->info.destination),
                        .headers = letter->info.headers(redrive_)});
  }
  std::vector<PublishResult> results;
  try {
    results = publish_(messages);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    if (action_for(std::current_exception()) == Action::stop) throw;
    tell_waiting(error.what());
    return false;
  }
  if (results.size() != letters.size()) {
    throw Error(ErrorCode::invalid_argument, "the republisher did not return one result for each message");
  }
  const std::size_t before = summary_.redriven;
  for (std::size_t i = 0; i < letters.size(); ++i) take_result(*letters[i], results[i]);
  wait_for_rate(summary_.redriven - before);
  return std::ranges::none_of(letters, [](const Letter* letter) { return letter->is_open(); });
}

void Redriver::take_result(Letter& letter, const PublishResult& result) {
  if (result.status == PublishStatus::confirmed) {
    ++summary_.redriven;
    letter.is_published = true;
    failing_destinations_.erase(std::string(letter.info.destination));
    tell(RedriveEventType::redriven, letter);
  } else if (result.status == PublishStatus::rejected) {
    leave(letter, "the broker refuses it: " + result.error);
  } else if (result.status == PublishStatus::failed) {
    const auto now = Clock::now();
    if (!letter.fails_since) letter.fails_since = now;
    const auto since = failing_destinations_.try_emplace(std::string(letter.info.destination), now).first->second;
    if (now - std::min(since, *letter.fails_since) >= patience) leave(letter, "the broker refuses it: " + result.error);
  }
}

void Redriver::acknowledge(Letters& letters) {
  if (options_.dry_run) return;
  std::set<std::uint64_t> closed;  // the lanes with a dead letter that is not published
  for (const Left& each : left_) {
    if (each.incoming.lane) closed.insert(*each.incoming.lane);
  }
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
  tell(RedriveEventType::left, letter, letter.why_left);
}

/// Forgets what the broker has taken back: it comes again.
void Redriver::forget_lost() {
  if (!std::exchange(may_have_lost_, false)) return;
  std::erase_if(left_, [this](const Left& each) { return !source_.holds(each.incoming); });
  left_bytes_ = 0;
  for (const Left& each : left_) left_bytes_ += each.incoming.body.size();
}

/// Waits, and lets the source do what it must do regularly.
void Redriver::wait(milliseconds time) {
  const auto until = Clock::now() + time;
  while (!options_.stop.stop_requested() && Clock::now() < until) {
    (void)source_.poll(0, std::min(poll_time, std::chrono::ceil<milliseconds>(until - Clock::now())));
  }
}

void Redriver::wait_for_rate(std::size_t published) {
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

void Redriver::tell_waiting(std::string_view text) const {
  if (options_.observer) options_.observer({.type = RedriveEventType::waiting, .text = text});
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
