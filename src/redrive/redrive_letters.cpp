// Each dead letter of a batch: its message may run again, and it is published again or left.

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include <txinbox/error.hpp>
#include <txinbox/result.hpp>

#include "backend/error_class.hpp"
#include "backend/failure.hpp"
#include "redrive/redriver.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

/// A broker that has just started can refuse a message for a few seconds.
constexpr std::chrono::seconds patience(10);

}  // namespace

/// Lets the messages of the open letters run again in the database.
void Redriver::let_run(Letters& letters) {
  const auto needs = [](const auto& letter) { return letter->is_open() && !letter->can_run; };
  if (std::ranges::none_of(letters, needs)) return;
  try {
    Connection connection = pool_.acquire(options_.stop);
    for (const auto& letter : letters) {
      if (needs(letter)) let_run(connection, *letter);
    }
  } catch (...) {
    const Failure failure = Failure::current();
    if (!failure.is_transient()) throw;
    if (!options_.stop.stop_requested()) tell_waiting(describe_error(failure.error()));
  }
}

/// Errors: those of the database, unless they concern only this letter.
void Redriver::let_run(Connection& connection, Letter& letter) {
  try {
    if (auto why = release_.let_run(connection, letter.info); !why.empty()) return leave(letter, std::move(why));
    letter.can_run = true;
  } catch (...) {
    const Failure failure = Failure::current();
    const bool is_locked = failure.error_class() == backend::ErrorClass::lock_timeout ||
                           failure.error_class() == backend::ErrorClass::deadlock;
    if (!is_locked) throw;
    if (fails_too_long(letter)) leave(letter, "another transaction holds its key");
  }
}

void Redriver::publish(const std::vector<Letter*>& letters) {
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
    return forget_failures(letters);
  }
  if (results.size() != letters.size()) {
    throw Error(ErrorCode::invalid_argument, "the republisher did not return one result for each message");
  }
  if (std::ranges::any_of(results, [](const auto& each) { return each.status == PublishStatus::postponed; })) {
    forget_failures(letters);
  }
  for (std::size_t i = 0; i < letters.size(); ++i) take_result(*letters[i], results[i]);
}

/// The broker was away. So an older failure does not say that it refuses a message.
void Redriver::forget_failures(const std::vector<Letter*>& letters) {
  failing_destinations_.clear();
  for (Letter* const letter : letters) letter->fails_since.reset();
}

void Redriver::take_result(Letter& letter, const PublishResult& result) {
  switch (result.status) {
    case PublishStatus::confirmed:
      ++summary_.redriven;
      ++published_;
      letter.is_published = true;
      failing_destinations_.erase(std::string(letter.info.destination));
      return tell(RedriveEventType::redriven, letter);
    case PublishStatus::rejected:
      return leave(letter, "the broker refuses it: " + result.error);
    case PublishStatus::failed: {
      const auto now = Clock::now();
      const auto since = failing_destinations_.try_emplace(std::string(letter.info.destination), now).first->second;
      const bool is_gone = now - since >= patience;
      if (fails_too_long(letter) || is_gone) leave(letter, "the broker refuses it: " + result.error);
      return;
    }
    case PublishStatus::postponed:
      return;
  }
}

bool Redriver::fails_too_long(Letter& letter) {
  if (!letter.fails_since) letter.fails_since = Clock::now();
  return Clock::now() - *letter.fails_since >= patience;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
