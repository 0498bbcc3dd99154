#include "torture/relay_worker.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <soci/soci.h>
#include <unistd.h>
#include <txinbox/outbox_messages.hpp>
#include <txinbox/outbox_relay.hpp>

#include "console/describe_error.hpp"
#include "console/exit_status.hpp"
#include "console/line_reader.hpp"
#include "console/output.hpp"
#include "torture/dice.hpp"
#include "torture/messages.hpp"
#include "torture/outbox_sink.hpp"
#include "torture/storm_pool.hpp"

namespace txinbox::torture {
namespace {

using namespace std::chrono_literals;

// The lease is short, so that other relays soon take over from a killed relay. Some publishers take longer than the
// lease.
constexpr std::chrono::milliseconds lease = 500ms;
constexpr std::chrono::milliseconds stall = lease + lease / 2;

constexpr std::size_t longest_line = 1'000'000;

/// The publisher of one relay.
class Broker {
 public:
  Broker(const WorkerOptions& options, bool confirms_early)
      : sink_(options.sink), dice_(options.seed, {9, options.number}), confirms_early_(confirms_early) {}

  std::vector<PublishResult> operator()(std::span<const OutgoingMessage> messages) {
    if (dice_.chance(50)) std::this_thread::sleep_for(stall);
    std::vector<PublishResult> results;
    for (const OutgoingMessage& message : messages) results.push_back(publish(message));
    // The pause makes it likely that a relay is killed here: the sink has the messages, and the rows are still in the
    // outbox.
    if (dice_.chance(1'000)) std::this_thread::sleep_for(5ms);
    if (dice_.chance(100)) throw std::runtime_error("the reply of the sink is lost");
    return results;
  }

 private:
  PublishResult publish(const OutgoingMessage& message) {
    // It accepts only the storm's messages. Those of a service stay in the outbox.
    if (message.topic != outbox_topic) return {.status = PublishStatus::failed, .error = "not a message of the storm"};
    PublishResult result;
    if (is_refused(message)) {
      result = {.status = PublishStatus::failed, .error = "refused"};
    } else {
      sink_.take(message);
      if (dice_.chance(300)) result = {.status = PublishStatus::failed, .error = "the confirmation is lost"};
    }
    return confirms_early_ ? PublishResult{} : result;
  }

  /// Every fifth message, when it comes to this publisher for the first time.
  bool is_refused(const OutgoingMessage& message) {
    return Dice(std::hash<std::string>()(message.id), {8}).chance(2'000) && refused_.insert(message.id).second;
  }

  Sink sink_;
  Dice dice_;
  bool confirms_early_;
  std::set<std::string> refused_;
};

/// Broken on purpose: publishes the newest messages first.
class UnorderedRelay {
 public:
  UnorderedRelay(Pool& pool, const std::string& sink)
      : pool_(pool), sink_(sink), thread_([this](const std::stop_token& stop) { work(stop); }) {}

 private:
  void work(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      try {
        publish();
      } catch (const soci::soci_error&) {  // NOLINT(bugprone-empty-catch): the database is away
      }
      std::this_thread::sleep_for(20ms);
    }
  }

  void publish() {
    const Connection connection = pool_.acquire();
    auto rows = list_outbox(connection, {.topic = outbox_topic, .limit = 100, .payloads = true});
    std::ranges::reverse(rows);
    for (const OutboxMessageInfo& row : rows) {
      sink_.take(
          {.topic = row.topic, .key = row.key, .type = row.type, .payload = row.payload.value_or(""), .id = row.id});
      discard_outbox(connection, {.id = row.id, .state = OutboxState::waiting});
    }
  }

  Pool& pool_;
  Sink sink_;
  std::jthread thread_;
};

/// Opens the database. It tries again until this succeeds.
Pool open(const WorkerOptions& options, const cli::DatabaseOption& database) {
  while (true) {
    try {
      return open_worker_pool(database, options.name, 2);
    } catch (const soci::soci_error&) {
      std::this_thread::sleep_for(50ms);  // the parent could connect; it kills this process when it gives up
    }
  }
}

RelayOptions relay_options(unsigned number) {
  constexpr std::array<std::size_t, 3> batches{500, 20, 3};
  return {.batch = batches.at(number % batches.size()),
          .poll = 5ms,
          .idle_poll = 50ms,
          .sweep = 300ms,
          .lease = lease,
          .initial_backoff = 10ms,
          .max_backoff = 200ms};
}

void wait_for_the_end() {
  cli::LineReader lines(STDIN_FILENO, -1, longest_line);
  std::string_view line;
  while (lines.next(line) == cli::LineReader::Status::line) {
  }
}

}  // namespace

int run_relay(const WorkerOptions& options, const cli::DatabaseOption& database) {
  cli::Output output;
  const auto say = [&](const Reply& reply) {
    std::string line = to_line(reply);
    line.pop_back();
    output.line(line);
  };
  try {
    Pool pool = open(options, database);
    std::optional<OutboxRelay> relay;
    std::optional<UnorderedRelay> unordered;
    if (options.subject == "order") {
      unordered.emplace(pool, options.sink);
    } else {
      const auto broker = std::make_shared<Broker>(options, options.subject == "delete");
      relay.emplace(
          pool, [broker](std::span<const OutgoingMessage> messages) { return (*broker)(messages); },
          relay_options(options.number));
    }
    say({});
    wait_for_the_end();
  } catch (...) {
    say({.fatal = cli::describe_setup_error(std::current_exception())});
  }
  return cli::exit_ok;
}

}  // namespace txinbox::torture
