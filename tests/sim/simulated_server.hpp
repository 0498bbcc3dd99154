#pragma once

// Servers of the simulated database, and statements on them.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/database/migrated.hpp"
#include "sim/database/personality.hpp"
#include "sim/database/server.hpp"
#include "sim/threads.hpp"

namespace txinbox::test {

/// Runs a test with a server of each personality.
inline void for_each_server(const std::function<void(sim::Server&)>& test) {
  static const sim::Migrated migrated = sim::make_migrated();
  for (const sim::Personality& personality : sim::personalities) {
    CAPTURE(personality.name);
    sim::Threads::run({.seed = 1}, [&] {
      sim::Server server(personality, migrated);
      test(server);
    });
  }
}

inline std::unique_ptr<sim::ServerSession> connect(sim::Server& server) {
  return std::make_unique<sim::ServerSession>(server, sim::Threads::instance()->current_process_ptr());
}

inline std::string insert(std::string_view key) {
  return fmt::format(
      "INSERT INTO txinbox_consumed_message (consumer, business_key, state, attempt_token) "
      "VALUES ('svc', '{}', 'consumed', x'00')",
      key);
}

inline std::int64_t count(sim::Server& server) {
  return server.query("SELECT count(*) FROM txinbox_consumed_message").at(0).at(0).integer;
}

/// The code of the error of a statement. Empty if it succeeds.
inline std::string error_of(sim::ServerSession& session, const std::string& sql) {
  try {
    session.execute(sql);
  } catch (const sim::SimulatedError& error) {
    return error.code();
  }
  return {};
}

}  // namespace txinbox::test
