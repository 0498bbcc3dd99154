#pragma once

// TLS to MariaDB and MySQL. A connection string of SOCI cannot require it.

#include <map>
#include <string>
#include <string_view>

#include <txinbox/version.hpp>

#include "backend/mysql/native.hpp"
#include "base/url.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// The options in the [client] group of the option files, as the client library reads them.
struct MysqlOptionFiles {
  enum class Verifies { unsaid, no, yes };

  std::string password;
  std::map<mysql_option, std::string> tls;  ///< The options whose value is a text: files, ciphers and so on.
  bool encrypts = false;                    ///< ssl-enforce.
  Verifies verifies = Verifies::unsaid;     ///< ssl-verify-server-cert.
};

/// Reads the files without a connection. Empty if there are none.
MysqlOptionFiles read_mysql_option_files();

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
