#include "torture/subject.hpp"

#include <chrono>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/error.hpp>

#include "console/describe_error.hpp"
#include "console/usage_error.hpp"
#include "torture/counters.hpp"
#include "torture/lease_subject.hpp"
#include "torture/scratch_tables.hpp"

namespace txinbox::torture {
namespace {

using namespace std::chrono_literals;

/// The counters of the assignment that this thread runs. The listener adds to them.
thread_local Counters* thread_counters = nullptr;

class TxSubject : public Subject {
 public:
  TxSubject(Pool& pool, SubjectOptions options)
      : consumer_(pool, consumer_name, consumer_options(std::move(options))) {}

  std::vector<Answer> consume(const std::vector<Message>& messages, const Assignment& assignment,
                              TransferHandler& handler, Counters& met) override {
    thread_counters = &met;
    const Handler call = [&](soci::session& sql, Delivery& delivery) { handler(sql, delivery); };
    const BatchHandler call_for_all = [&](soci::session& sql, std::span<Delivery> deliveries) {
      for (Delivery& each : deliveries) {
        handler(sql, each);
        if (sql.get_backend() == nullptr) return;  // the handler has closed the session
      }
    };
    std::vector<Answer> answers;
    try {
      if (assignment.is_batch) {
        const auto on_failure = assignment.skips_failures ? OnFailure::skip : OnFailure::stop;
        const auto results = assignment.is_at_once ? consumer_.consume_batch(messages, call_for_all, on_failure)
                                                   : consumer_.consume_batch(messages, call, on_failure);
        for (const Result& result : results) {
          answers.push_back(answer_for(result, handler.is_failure_planned(answers.size())));
        }
      } else {
        const Result result = consumer_.consume(messages.front(), call);
        answers.push_back(answer_for(result, handler.is_failure_planned(0)));
      }
    } catch (...) {
      while (answers.size() < messages.size()) {
        answers.push_back(answer_for(std::current_exception(), handler.is_failure_planned(answers.size())));
      }
    }
    thread_counters = nullptr;
    return answers;
  }

 private:
  static ConsumerOptions consumer_options(SubjectOptions options) {
    return {
        .retry = {.max_runs = options.max_attempts, .initial_backoff = 5ms, .max_backoff = 500ms, .max_elapsed = 10s},
        .stop = std::move(options.stop),
        .listeners = {on_event([](const Event& event) { observe(event); })},
        .recent_keys = {.capacity = options.remembers ? 1'000U : 0U, .max_age = 10s},
        .max_attempts = options.parks_after};
  }

  static void observe(const Event& event) {
    if (thread_counters == nullptr) return;
    if (event.type == EventType::retry) ++thread_counters->retries;
    if (event.error) count(event.error, *thread_counters);
  }

  TxConsumer consumer_;
};

/// Broken on purpose: it consumes without a claim, so a redelivery runs again.
class WithoutClaims : public Subject {
 public:
  explicit WithoutClaims(Pool& pool) : pool_(pool) {}

  std::vector<Answer> consume(const std::vector<Message>& messages, const Assignment&, TransferHandler& handler,
                              Counters& met) override {
    std::vector<Answer> answers;
    for (const Message& message : messages) {
      Delivery delivery(message, 1, {}, answers.size());
      try {
        Connection connection = pool_.acquire();
        soci::transaction transaction(connection.session());
        handler(connection.session(), delivery);
        transaction.commit();
        answers.push_back({.outcome = Outcome::consumed, .action = Action::acknowledge, .stored = delivery.stored()});
      } catch (...) {
        count(std::current_exception(), met);
        answers.push_back(answer_for(std::current_exception(), true));
      }
    }
    return answers;
  }

 private:
  Pool& pool_;
};

/// Broken on purpose: it acknowledges every delivery, even a failed one, like a service that acknowledges before its
/// commit.
class AcknowledgesEarly : public Subject {
 public:
  AcknowledgesEarly(Pool& pool, SubjectOptions options) : consumer_(pool, std::move(options)) {}

  std::vector<Answer> consume(const std::vector<Message>& messages, const Assignment& assignment,
                              TransferHandler& handler, Counters& met) override {
    auto answers = consumer_.consume(messages, assignment, handler, met);
    for (Answer& answer : answers) {
      if (answer.action != Action::redeliver) continue;
      answer = {.outcome = Outcome::already_consumed, .action = Action::acknowledge};
    }
    return answers;
  }

 private:
  TxSubject consumer_;
};

}  // namespace

bool is_leased(const std::string& kind) { return kind == "lease" || kind == "fence"; }

bool has_outbox(const std::string& kind) { return kind == "outbox" || kind == "delete" || kind == "order"; }

bool has_redrive(const std::string& kind) { return kind == "redrive" || kind == "early"; }

std::unique_ptr<Subject> make_subject(const std::string& kind, Pool& pool, SubjectOptions options) {
  if (kind == "tx" || has_outbox(kind) || has_redrive(kind))
    return std::make_unique<TxSubject>(pool, std::move(options));
  if (is_leased(kind)) return make_lease_subject(pool, std::move(options), kind == "lease");
  if (kind == "dedup") return std::make_unique<WithoutClaims>(pool);
  if (kind == "acknowledge") return std::make_unique<AcknowledgesEarly>(pool, std::move(options));
  throw cli::UsageError(fmt::format("'{}' is not a kind of consumer", kind));
}

Answer answer_for(const Result& result, bool is_planned) {
  if (result.outcome == Outcome::failed) return answer_for(result.error, is_planned);
  Answer answer{.outcome = result.outcome,
                .action = action_for(result),
                .stored = result.stored,
                .retry_after = result.retry_after};
  if (result.outcome == Outcome::parked && result.error) {
    const Answer failed = answer_for(result.error, is_planned);
    answer.failure = failed.failure;
    answer.why = failed.why;
  }
  return answer;
}

Answer answer_for(const std::exception_ptr& error, bool is_planned) {
  Answer answer{.outcome = Outcome::failed, .action = action_for(error)};
  answer.failure = is_transient(error) ? Failure::transient : is_planned ? Failure::by_handler : Failure::unexpected;
  // The storm's values are not secret, so the database's own text is shown.
  if (answer.failure == Failure::unexpected) answer.why = describe_error(error, true);
  return answer;
}

}  // namespace txinbox::torture
