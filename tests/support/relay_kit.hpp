#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <soci/soci.h>
#include <txinbox/outbox.hpp>
#include <txinbox/outbox_relay.hpp>

#include "support/test_database.hpp"

namespace txinbox::test {

/// Options with short waits.
inline RelayOptions quick(std::function<void(const RelayEvent&)> observer = {}) {
  using namespace std::chrono_literals;
  return {.poll = 5ms,
          .idle_poll = 20ms,
          .sweep = 200ms,
          .lease = 10s,
          .initial_backoff = 20ms,
          .max_backoff = 40ms,
          .listeners = observer ? Listeners{on_event(std::move(observer))} : Listeners{}};
}

inline void add(const TestDatabase& db, const std::string& key, const std::vector<std::string>& payloads) {
  std::vector<OutgoingMessage> messages;
  for (const std::string& payload : payloads) messages.push_back({.topic = "t", .key = key, .payload = payload});
  Outbox::add(*db.session(), messages);
}

inline PublishResult no(std::string why = "no") { return {.status = PublishStatus::failed, .error = std::move(why)}; }

}  // namespace txinbox::test
