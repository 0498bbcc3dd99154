#pragma once

#include <string>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// The SQLSTATE with which the server refuses this connection, after it could not be made. "08001" when there is none:
/// the server was not reached, or would take it by now. Connects once more, since libpq tells the code only to those
/// who have asked for it before.
std::string postgresql_state_of_refusal(const std::string& conninfo);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
