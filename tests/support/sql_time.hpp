#pragma once

#include <chrono>
#include <string>

#include "support/schema_tools.hpp"

namespace txinbox::test {

/// SQL for a time relative to now, in UTC. Negative: in the past.
inline std::string sql_time(std::chrono::seconds from_now) {
  const std::string n = std::to_string(from_now.count());
  return here<std::string>("strftime('%Y-%m-%d %H:%M:%f', 'now', '" + n + " seconds')",
                           "utc_timestamp(6) + interval " + n + " second", "now() + interval '" + n + " seconds'");
}

/// Makes rows of the consumed-message table older. `condition` is the WHERE clause.
inline void make_older(const TestDatabase& db, const std::string& condition, std::chrono::seconds age) {
  db.run("update txinbox_consumed_message set consumed_at = " + sql_time(-age) + " where " + condition);
}

}  // namespace txinbox::test
