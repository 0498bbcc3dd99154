#include "outbox/relay_run.hpp"

#include <algorithm>
#include <exception>
#include <iterator>
#include <optional>
#include <utility>
#include <variant>

#include "backend/failure.hpp"
#include "pool/with_session.hpp"
#include "telemetry/listeners.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

RelayRun::RelayRun(SessionProvider& source, const Publisher& publisher, const RelayOptions& options)
    : source_(source),
      publisher_(publisher),
      options_(options),
      notify_([this](const RelayEvent& event) { notify(event); }),
      leases_(source, options.lease),
      machine_(options, notify_) {}

void RelayRun::notify(const RelayEvent& event) const noexcept { detail::notify(options_.listeners, event); }

void RelayRun::run(const std::stop_token& stop, const WaitUntil& wait) noexcept {
  for (;;) {
    if (stop.stop_requested()) machine_.stop();
    try {
      const RelayJob job = machine_.next(Clock::now());
      if (std::holds_alternative<relay_job::End>(job)) break;
      if (const auto* rest = std::get_if<relay_job::Wait>(&job)) {
        if (wait(rest->until)) machine_.woken();
      } else {
        std::visit([&](const auto& each) { perform(each, stop); }, job);
      }
    } catch (...) {
      const Failure failure = Failure::current();
      // Such a job was not done because of the stop. The database can still remove what was published.
      const bool is_interrupted = failure.is(ErrorCode::stopped) && stop.stop_requested() && !machine_.is_stopping();
      if (stop.stop_requested()) machine_.stop();
      if (!is_interrupted) machine_.database_failed(failure.error(), Clock::now());
    }
  }
  leases_.leave();
}

void RelayRun::perform(const relay_job::Refresh&, const std::stop_token& stop) {
  const bool took = leases_.refresh(stop);
  machine_.refreshed(leases_.parts(), took, leases_.expires(), Clock::now());
}

void RelayRun::perform(const relay_job::Renew&, const std::stop_token& stop) {
  const bool renewed = leases_.renew(stop);
  machine_.renewed(renewed ? std::optional(leases_.expires()) : std::nullopt);
}

void RelayRun::perform(const relay_job::List& job, const std::stop_token& stop) {
  const auto rows = with_session(
      source_, stop, [&](backend::Session& session) { return OutboxMessageTable(session).list(job.query); });
  machine_.listed(rows, Clock::now());
}

void RelayRun::perform(const relay_job::ReadWriters&, const std::stop_token& stop) {
  auto writers =
      with_session(source_, stop, [](backend::Session& session) { return OutboxMessageTable(session).writers(); });
  machine_.read_writers(std::move(writers), Clock::now());
}

void RelayRun::perform(const relay_job::Read& job, const std::stop_token& stop) {
  std::vector<OutboxRow> rows;
  const bool durable = with_session(source_, stop, [&](backend::Session& session) {
    for (const OutboxQuery& query : job.queries) {
      std::ranges::move(OutboxMessageTable(session).read(query), std::back_inserter(rows));
    }
    return !session.shows_commits_early();
  });
  machine_.read(std::move(rows), durable, Clock::now());
}

void RelayRun::perform(const relay_job::Publish& job, const std::stop_token&) {
  std::vector<PublishResult> results;
  Publication publication{.messages = job.messages, .results = {}, .started = std::chrono::system_clock::now()};
  const auto begin = Clock::now();
  try {
    results = publisher_(job.messages);
    if (results.size() == job.messages.size()) publication.results = results;
  } catch (...) {
    publication.error = std::current_exception();
  }
  publication.duration = Clock::now() - begin;
  detail::notify(options_.listeners, publication);
  if (publication.error) return machine_.publisher_threw(publication.error, Clock::now());
  machine_.published(results, Clock::now());
}

// It does not use the stop token: otherwise the messages would be published again.
void RelayRun::perform(const relay_job::Remove& job, const std::stop_token&) {
  with_session(source_, {}, [&](backend::Session& session) { OutboxMessageTable(session).remove(job.rows); });
  machine_.removed(Clock::now());  // not before the session was given back: a listener may need it
}

void RelayRun::perform(const relay_job::Count& job, const std::stop_token&) {
  constexpr std::size_t most_at_once = 500;  // an error text has up to 1,000 bytes
  with_session(source_, {}, [&](backend::Session& session) {
    const OutboxMessageTable table(session);
    for (auto rest = job.failures; !rest.empty();) {
      const auto part = rest.first(std::min(rest.size(), most_at_once));
      table.record_failures(part);
      rest = rest.subspan(part.size());
    }
  });
  machine_.counted();
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
