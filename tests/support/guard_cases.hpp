#pragma once

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <soci/soci.h>

#include "support/test_database.hpp"
#include "torture/misbehaviours.hpp"

namespace txinbox::test {

/// How a delivery ended, and which rows it left.
struct Ending {
  std::string how;       ///< consumed, an error code's name, or "handler's error"
  std::string claim;     ///< the row's state, or "none"
  long long before = 0;  ///< rows that the handler wrote before its misbehaviour
  long long after = 0;   ///< rows that the handler wrote after its misbehaviour

  friend bool operator==(const Ending&, const Ending&) = default;
};

struct HandlersOwnError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One misbehaviour, and its result on the database under test. No result: the case does not exist there.
struct GuardCase {
  std::string name;
  std::function<void(soci::session&, TestDatabase&)> misbehave;
  std::optional<Ending> in_pool;
  std::optional<Ending> in_session;
};

std::vector<GuardCase> guard_cases();

/// The tables and procedures of the cases.
void prepare_guard_case(TestDatabase&);

using torture::quietly;

/// The server's identifier for a session's connection.
long long connection_id(soci::session&);

/// Waits until a session of the test's own database waits for another session's lock, or until `over` says so.
void wait_until_one_waits_for_lock(const TestDatabase&, const std::function<bool()>& over = {});

/// Ends a session on the server, from another session.
void kill_connection(long long id, const TestDatabase&);
inline void kill_connection(soci::session& sql, const TestDatabase& db) { kill_connection(connection_id(sql), db); }

}  // namespace txinbox::test
