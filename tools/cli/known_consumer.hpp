#pragma once

#include <string>

namespace soci {
class session;
}

namespace txinbox::cli {

/// Where nothing was found: says on standard error that nothing is recorded of a consumer of that name, if that is
/// so. An empty name is none.
///
/// @return whether it said so.
bool say_if_unknown(soci::session& session, const std::string& consumer);

}  // namespace txinbox::cli
