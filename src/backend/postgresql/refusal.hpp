#pragma once

#include <string>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// The SQLSTATE with which the server refuses this connection. Call it after a failed attempt. It connects once more,
/// for up to 2 seconds, because libpq reports the code only if it was told to before the attempt. It returns "08001" if
/// the server cannot be reached, or accepts the connection by now.
std::string postgresql_state_of_refusal(const std::string& conninfo);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
