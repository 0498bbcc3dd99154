#pragma once

// SQL with parameters instead of literals, so that SQLite prepares a statement of the library only once.

#include <string>
#include <string_view>

#include "sim/database/value.hpp"

namespace txinbox::sim {

struct ParameterizedSql {
  std::string sql;
  Values parameters = {};
};

/// Replaces each number, string and blob of a statement by a parameter.
ParameterizedSql with_parameters(std::string_view sql);

}  // namespace txinbox::sim
