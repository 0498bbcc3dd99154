#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "backend/native_connection.hpp"
#include "backend/user_sql.hpp"
#include "cli/sql/bind.hpp"
#include "cli/sql/sql_script.hpp"

namespace txinbox::cli {

/// The script's statements on one connection, each prepared when it first runs and kept where that is safe.
class PreparedScript {
 public:
  explicit PreparedScript(soci::session& session);

  /// Runs one statement of the script, always the same one.
  ///
  /// Errors: as the statement's. The next run prepares anew.
  void run(const Script& script, std::size_t statement, const Values& values);

 private:
  struct Kept {
    bool may_keep = false;
    std::unique_ptr<backend::UserStatement> statement = {};
  };

  void begin(const Script& script);

  const backend::ConnectionPtr connection_;
  const backend::UserSql& sql_;
  bool stale_ = true;
  std::vector<Kept> kept_;  // for each statement
};

}  // namespace txinbox::cli
