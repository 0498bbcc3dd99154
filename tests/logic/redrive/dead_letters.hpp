#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <soci/soci.h>
#include <txinbox/inspect.hpp>
#include <txinbox/redrive.hpp>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/memory_broker.hpp"

namespace txinbox::test {

using Headers = std::vector<std::pair<std::string, std::string>>;

/// A dead-letter queue, the queue to which messages are published again, and the consumer's database.
struct DeadLetters {
  explicit DeadLetters(std::size_t lanes = 0) : letters(lanes) {}

  static Headers headers(const std::string& key, const Headers& more = {}) {
    Headers all{{"own", "1"},
                {"txinbox-reason", "parked"},
                {"txinbox-error-class", "std::runtime_error"},
                {"txinbox-consumer", "svc"},
                {"txinbox-key", key},
                {"txinbox-source", "orders"}};
    for (const auto& replaced : more) {
      std::erase_if(all, [&](const auto& each) { return each.first == replaced.first; });
      if (!replaced.second.empty()) all.push_back(replaced);
    }
    return all;
  }

  /// The consumer parks the message, and the dead letter is published. `more` replaces headers; empty ones are removed.
  void add(const std::string& key, const Headers& more = {}, int lane = 0) {
    TxConsumer consumer(pool, "svc", {.max_attempts = 1});
    try {
      (void)consumer.consume({.business_key = key}, [](soci::session&, Delivery&) { throw std::runtime_error("bad"); });
    } catch (const std::runtime_error&) {
    }
    letters.publish(lane, {.body = key, .headers = headers(key, more)});
  }

  std::vector<PublishResult> publish(std::span<const Republication> messages) {
    std::vector<PublishResult> results;
    for (const Republication& each : messages) {
      const std::string key(each.incoming->body);
      const PublishResult result = answers.contains(key) ? answers[key] : PublishResult{};
      if (result.status == PublishStatus::confirmed) {
        published.push_back(key);
        destinations.push_back(each.destination);
        added.emplace_back(each.headers.begin(), each.headers.end());
      }
      results.push_back(result);
    }
    return results;
  }

  RedriveSummary run(RedriveOptions options = {}) {
    options.idle_exit = std::chrono::milliseconds(20);
    options.observer = [this, then = options.observer](const RedriveEvent& event) {
      if (event.type == RedriveEventType::left) left[std::string(event.business_key)] = event.text;
      if (then) then(event);
    };
    MemorySource source(letters);
    return redrive(
        source, [this](std::span<const Republication> messages) { return publish(messages); }, pool, options);
  }

  std::string state_of(const std::string& key) {
    const auto found = find_message(pool.acquire().session(), "svc", key);
    return found ? found->state : "";
  }

  EffectDatabase db;
  Pool pool = db.pool();
  MemoryBroker letters;
  std::map<std::string, PublishResult> answers;  ///< By the body. Otherwise a message is confirmed.
  std::vector<std::string> published, destinations;
  std::vector<std::map<std::string_view, std::string>> added;
  std::map<std::string, std::string> left;
};

}  // namespace txinbox::test
