#pragma once

// TLS to MariaDB and MySQL. A connection string of SOCI cannot require it.

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

/// Whether the URL's parameter is one about TLS: `sslmode`, `sslca`, `sslcert` or `sslkey`.
bool is_tls_parameter(std::string_view name);

/// The host for SOCI's connection string. If neither the URL's parameters nor the option files mention TLS, it is the
/// URL's host. Otherwise it is a name that tells `mysql_factory` which TLS is asked for.
///
/// Errors: `Error` invalid_argument.
std::string mysql_host(const detail::Url& url, const MysqlOptionFiles& files);

/// Refuses a user's own connection string for SOCI if it asks for TLS, because SOCI cannot require it.
///
/// Errors: `Error` unsafe_connection.
void refuse_weak_tls(std::string_view soci_string);

/// SOCI's factory, with the TLS that `mysql_host` has written into the host. A server that does not offer it is refused
/// before the client logs in. If the connection is not encrypted nevertheless, `make_session` throws `Error`
/// unsafe_connection.
const soci::backend_factory& mysql_factory() noexcept;

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
