#pragma once

#include <string>

#include "console/database_option.hpp"

namespace txinbox::fuzz {

/// Claims that SOCI's own parser finds the placeholders that `soci_placeholders` says. Without SOCI's static
/// libraries it claims nothing.
#ifdef TXINBOX_WITH_SOCI_PARSERS
void claim_soci_reads_alike(const std::string& sql, cli::Database database);
#else
inline void claim_soci_reads_alike(const std::string& /*sql*/, cli::Database /*database*/) {}
#endif

}  // namespace txinbox::fuzz
