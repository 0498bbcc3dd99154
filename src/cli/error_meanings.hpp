#pragma once

#include <string_view>

namespace txinbox::cli {

// What the codes mean that a user's SQL meets most; empty for others.

std::string_view sqlite3_meaning(int code);
std::string_view mysql_meaning(int code);
std::string_view postgresql_meaning(std::string_view sqlstate);

}  // namespace txinbox::cli
