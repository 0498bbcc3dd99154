#pragma once

// TLS for connections to MariaDB and MySQL. A connection string of SOCI cannot require TLS.

#include <string>
#include <string_view>

#include <txinbox/version.hpp>

#include "backend/mysql/option_files.hpp"
#include "base/url.hpp"

namespace soci {
class backend_factory;
}

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// Whether the URL's parameter belongs to TLS: `sslmode`, `sslca`, `sslcert` or `sslkey`.
bool is_tls_parameter(std::string_view name);

/// Returns the host for SOCI's connection string. If neither the URL's parameters nor the option files mention TLS, it
/// is the URL's host. Otherwise it is a name that tells `mysql_factory` which TLS settings to use.
///
/// Errors: `Error` invalid_argument.
std::string mysql_host(const detail::Url& url, const MysqlOptionFiles& files);

/// Refuses a user's own connection string for SOCI if it asks for TLS. SOCI cannot require TLS.
///
/// Errors: `Error` unsafe_connection.
void refuse_weak_tls(std::string_view soci_string);

/// Returns SOCI's factory, with the TLS settings that `mysql_host` has written into the host. If a server does not
/// offer this TLS, the connection fails before the client logs in. If the connection is nevertheless not encrypted,
/// `make_session` throws `Error` unsafe_connection.
const soci::backend_factory& mysql_factory() noexcept;

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
