#pragma once

#include "cli/sql_script.hpp"

namespace txinbox::fuzz {

/// Claims that SOCI's own parser finds in the statement the placeholders that `soci_placeholders` says,
/// which are all that the statement names. Without SOCI's static libraries it claims nothing.
#ifdef TXINBOX_WITH_SOCI_PARSERS
void claim_is_read_by_soci(const cli::Statement& statement, cli::Database database);
#else
inline void claim_is_read_by_soci(const cli::Statement& /*statement*/, cli::Database /*database*/) {}
#endif

}  // namespace txinbox::fuzz
