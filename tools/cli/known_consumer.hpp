#pragma once

#include <string>

namespace soci {
class session;
}

namespace txinbox::cli {

/// Call this if nothing was found. If the inbox has no record of a consumer with this name, it says so on standard
/// error. An empty name means no consumer.
///
/// @return whether it printed this.
bool say_if_unknown(soci::session& session, const std::string& consumer);

}  // namespace txinbox::cli
