#include "torture/lease_subject.hpp"

#include <chrono>
#include <utility>

#include <txinbox/error.hpp>
#include <txinbox/lease_consumer.hpp>

#include "torture/counters.hpp"
#include "torture/fenced_transfer.hpp"
#include "torture/scratch_tables.hpp"
#include "torture/subject.hpp"

namespace txinbox::torture {
namespace {

using namespace std::chrono_literals;

// Short, so that some handlers run for longer, and other workers soon take over the leases of a killed worker.
constexpr std::chrono::milliseconds lease_length = 500ms;

thread_local Counters* thread_counters = nullptr;

class LeaseSubject : public Subject {
 public:
  LeaseSubject(Pool& pool, SubjectOptions options, bool checks_fence)
      : pool_(pool),
        consumer_(pool, consumer_name, terms(options, checks_fence), consumer_options(std::move(options))),
        checks_fence_(checks_fence) {}

  std::vector<Answer> consume(const std::vector<Message>& messages, const Assignment& assignment,
                              TransferHandler& handler, Counters& met) override {
    thread_counters = &met;
    const FencedTransfer::Setting setting{.pool = pool_,
                                          .plan = handler.plan(),
                                          .names = handler.names(),
                                          .lease = lease_length,
                                          .checks_fence = checks_fence_};
    std::vector<Answer> answers;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      answers.push_back(consume_one(messages[i], FencedTransfer(setting, assignment, i), met));
    }
    thread_counters = nullptr;
    return answers;
  }

 private:
  Answer consume_one(const Message& message, FencedTransfer transfer, Counters& met) {
    try {
      return answer_for(consumer_.consume(message, [&](Lease& lease) { transfer(lease); }), false);
    } catch (const FenceRefused&) {
      ++met.effects_refused;
      return taken_over();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::lease_lost) {
        return answer_for(std::current_exception(), transfer.is_failure_planned());
      }
      ++met.leases_lost;
      return taken_over();
    } catch (...) {
      return answer_for(std::current_exception(), transfer.is_failure_planned());
    }
  }

  /// The handler was too slow, on purpose or because the machine was slow.
  static Answer taken_over() { return {.outcome = Outcome::failed, .action = action_for(std::current_exception())}; }

  /// `may_renew`: if false, other workers take over the lease of each late handler.
  static LeaseTerms terms(const SubjectOptions& options, bool may_renew) {
    return {.length = lease_length, .heartbeat = options.has_heartbeat && may_renew ? lease_length / 5 : 0ms};
  }

  static ConsumerOptions consumer_options(SubjectOptions options) {
    return {
        .retry = {.max_runs = options.max_attempts, .initial_backoff = 5ms, .max_backoff = 500ms, .max_elapsed = 10s},
        .claim_wait = options.waits ? 200ms : 0ms,
        .stop = std::move(options.stop),
        .listeners = {on_event([](const Event& event) { observe(event); })}};
  }

  static void observe(const Event& event) {
    if (thread_counters == nullptr) return;
    if (event.type == EventType::lease_taken_over) ++thread_counters->leases_taken_over;
    if (event.type == EventType::retry) ++thread_counters->retries;
    if (event.error) count(event.error, *thread_counters);
  }

  Pool& pool_;
  LeaseConsumer consumer_;
  bool checks_fence_;
};

}  // namespace

std::unique_ptr<Subject> make_lease_subject(Pool& pool, SubjectOptions options, bool checks_fence) {
  return std::make_unique<LeaseSubject>(pool, std::move(options), checks_fence);
}

}  // namespace txinbox::torture
