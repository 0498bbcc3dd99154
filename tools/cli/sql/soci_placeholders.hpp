#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/sql/sql_lexer.hpp"

namespace txinbox::cli {

/// The placeholders that SOCI 4's own parser finds in a statement: the offset of each colon and the
/// name. It knows '…' (and "…" on PostgreSQL), but no other quotes and no comments, so that it can
/// see some that are none and miss some that are.
///
/// Limits: MySQL and PostgreSQL; on SQLite SOCI leaves the parsing to the database.
std::vector<std::pair<std::size_t, std::string>> soci_placeholders(std::string_view statement, Database database);

}  // namespace txinbox::cli
