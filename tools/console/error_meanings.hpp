#pragma once

#include <string_view>

namespace txinbox::cli {

// What the codes mean that a user's SQL meets most; empty for others.

std::string_view sqlite3_meaning(int code);

/// Whether that is all there is to say: not of wrong SQL or a constraint, where the database's text has names.
bool sqlite3_meaning_says_all(int code);

std::string_view mysql_meaning(int code);
std::string_view postgresql_meaning(std::string_view sqlstate);

}  // namespace txinbox::cli
