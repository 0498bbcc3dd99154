#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "cli/sql/prepared_statement.hpp"
#include "cli/sql/sql_script.hpp"

namespace txinbox::cli {

/// The script's statements on one connection, each prepared when it first runs and kept where that is safe.
class PreparedScript {
 public:
  explicit PreparedScript(soci::session& session);

  /// Runs one statement of the script, always the same one.
  ///
  /// Errors: as the statement's. The next run prepares anew.
  void run(const Script& script, std::size_t statement, Values& values);

 private:
  using Kept = std::vector<std::unique_ptr<PreparedStatement>>;  // one for each combination of types

  void begin(const Script& script);

  soci::session& session_;
  bool stale_ = true;
  std::vector<std::optional<Kept>> kept_;  // for each statement; none where it is not to be kept
};

}  // namespace txinbox::cli
