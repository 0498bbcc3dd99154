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

/// How a delivery ended and what it left.
struct Ending {
  std::string how;       ///< consumed, an error code's name, or "handler's error"
  std::string claim;     ///< the row's state, or "none"
  long long before = 0;  ///< rows that the handler wrote before it misbehaved
  long long after = 0;   ///< rows that it wrote afterwards

  friend bool operator==(const Ending&, const Ending&) = default;
};

struct HandlersOwnError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One way to misbehave, and how it ends on the database under test. No ending: the case does not apply there.
struct GuardCase {
  std::string name;
  std::function<void(soci::session&, TestDatabase&)> misbehave;
  std::optional<Ending> in_pool;
  std::optional<Ending> in_session;
};

std::vector<GuardCase> guard_cases();

/// The tables and procedures that the cases need.
void prepare_guard_case(TestDatabase&);

using torture::quietly;

/// The server's identifier of a session's connection.
long long connection_id(soci::session&);

/// Waits until a session of the test's own database waits for a lock that another one holds.
void wait_until_one_waits_for_lock(const TestDatabase&);

/// Ends the server's side of a session, from another one.
void kill_connection(long long id, const TestDatabase&);
inline void kill_connection(soci::session& sql, const TestDatabase& db) { kill_connection(connection_id(sql), db); }

}  // namespace txinbox::test
