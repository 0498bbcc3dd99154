#pragma once

// The option files of the client library, such as my.cnf.

#include <mysql.h>

#include <map>
#include <string>

#include <txinbox/version.hpp>

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

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
