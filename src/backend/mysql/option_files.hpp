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
  std::map<mysql_option, std::string> tls;  ///< The options whose value is a text, such as files and ciphers.
  bool encrypts = false;                    ///< The value of ssl-enforce.
  Verifies verifies = Verifies::unsaid;     ///< The value of ssl-verify-server-cert.
};

/// Reads the files without connecting. The result is empty if there are no files.
MysqlOptionFiles read_mysql_option_files();

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
