#pragma once

#include "cli/sql/sql_script.hpp"

namespace txinbox::fuzz {

/// Claims that SQLite reads the text as one statement with the same placeholders.
void claim_is_one_to_sqlite(const cli::Statement& statement);

}  // namespace txinbox::fuzz
