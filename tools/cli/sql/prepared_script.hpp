#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "backend/native_connection.hpp"
#include "cli/sql/bind.hpp"
#include "cli/sql/sql_script.hpp"
#include "cli/sql/user_sql.hpp"

namespace txinbox::cli {

/// How many bytes of the script's statements one round trip may contain on this connection. 0: the statements run one
/// by one.
std::size_t most_together(const Script& script, const backend::NativeConnection& connection, const SqlLimits& limits);

/// The script's statements on one connection. Each is prepared when it first runs, and kept where this is safe.
class PreparedScript {
 public:
  explicit PreparedScript(soci::session& session);

  /// Runs one statement of the script. All calls must pass the same script and the same `keeps_statements`, which is
  /// that of the delivery.
  ///
  /// Errors: those of the statement. The next run prepares it again.
  void run(const Script& script, std::size_t statement, const Values& values, bool keeps_statements);

  /// Runs the script for each of these messages in turn, in few round trips. `Script::most_together` must not be 0.
  ///
  /// Errors: those of the statements. It is unknown which of them failed. The next run prepares them again.
  void run_together(const Script& script, std::span<const Values* const> messages, bool keeps_statements);

 private:
  struct Kept {
    bool may_keep = false;
    std::unique_ptr<UserStatement> statement = {};
  };

  void begin(const Script& script, bool keeps_statements);
  UserStatement& prepared(const Script& script, std::size_t statement);
  void ran(std::size_t statement, bool prepare_anew);
  void flush();

  const backend::ConnectionPtr connection_;
  const UserSql& sql_;
  bool stale_ = true;
  std::vector<Kept> kept_;            // one for each statement
  std::vector<UserRun> waiting_;      // for `run_together`
  std::vector<std::size_t> numbers_;  // the statement of each entry of `waiting_`
};

}  // namespace txinbox::cli
