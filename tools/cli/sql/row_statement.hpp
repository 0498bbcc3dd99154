#pragma once

#include <string_view>

namespace txinbox::cli {

/// Whether the statement's first word says that it only reads or changes rows: INSERT, WITH, but not
/// CREATE, SET or CALL.
bool is_row_statement(std::string_view statement);

}  // namespace txinbox::cli
