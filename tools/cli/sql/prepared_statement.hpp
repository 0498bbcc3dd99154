#pragma once

#include <cstddef>
#include <vector>

#include <soci/soci.h>

#include "cli/sql/bind.hpp"
#include "cli/sql/sql_script.hpp"

namespace txinbox::cli {

/// A statement with variables of its own, to which a message lends its values for a run.
class PreparedStatement {
 public:
  enum class Runs { once, often };

  /// For values of these types.
  PreparedStatement(soci::session& session, const Statement& statement, const Values& values, Runs runs);
  PreparedStatement(const PreparedStatement&) = delete;
  PreparedStatement& operator=(const PreparedStatement&) = delete;

  /// Whether they have the types of those that it was made for. NULL fits any.
  bool fits(const Values& values) const;

  /// Runs it, and drops its rows. The values are the same afterwards.
  ///
  /// @return whether there were rows. On SQLite they may hold locks until the statement is destroyed.
  bool run(Values& values);

 private:
  class Loan;

  struct Variable {
    std::size_t value;  // its place among the values
    BoundValue content;
    soci::indicator indicator;
  };

  std::vector<Variable> variables_;  // SOCI has their addresses
  soci::statement statement_;
};

}  // namespace txinbox::cli
