#pragma once

// TLS to MariaDB and MySQL, which SOCI's connection strings cannot require.

#include <map>
#include <string>
#include <string_view>

#include <txinbox/version.hpp>

#include "backend/mysql/native.hpp"
#include "base/url.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// What the [client] group of MariaDB's and MySQL's option files says, as the client library reads them.
struct MysqlOptionFiles {
  enum class Verifies { unsaid, no, yes };

  std::string password;
  std::map<mysql_option, std::string> tls;  ///< Files, ciphers and the like: what is a text.
  bool encrypts = false;                    ///< ssl-enforce.
  Verifies verifies = Verifies::unsaid;     ///< ssl-verify-server-cert.
};

/// Connects to nothing. Empty where there are no such files.
MysqlOptionFiles read_mysql_option_files();

/// Whether the URL's parameter is one about TLS: `sslmode`, `sslca`, `sslcert` or `sslkey`.
bool is_tls_parameter(std::string_view name);

/// The host for SOCI's connection string: the URL's own when neither its parameters nor the option files say anything
/// about TLS, and otherwise one which tells `mysql_factory` what they ask for.
///
/// Errors: `Error` invalid_argument.
std::string mysql_host(const detail::Url& url, const MysqlOptionFiles& files);

/// Refuses a connection string that the user wrote for SOCI and that asks for TLS, which SOCI cannot require.
///
/// Errors: `Error` unsafe_connection.
void refuse_weak_tls(std::string_view soci_string);

/// SOCI's factory, and TLS as `mysql_host` wrote it down: a server that does not offer what is required is refused
/// before the client logs in. `make_session` throws `Error` unsafe_connection for a connection that is not encrypted
/// all the same.
const soci::backend_factory& mysql_factory() noexcept;

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
