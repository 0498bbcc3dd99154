#include "backend/mysql/option_files.hpp"

#include <array>

#include "backend/mysql/native.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

#ifdef MARIADB_PACKAGE_VERSION
constexpr std::array text_options = {MYSQL_OPT_SSL_CA,        MYSQL_OPT_SSL_CAPATH,        MYSQL_OPT_SSL_CERT,
                                     MYSQL_OPT_SSL_KEY,       MARIADB_OPT_TLS_PASSPHRASE,  MYSQL_OPT_SSL_CRL,
                                     MYSQL_OPT_SSL_CRLPATH,   MYSQL_OPT_SSL_CIPHER,        MARIADB_OPT_TLS_VERSION,
                                     MARIADB_OPT_TLS_PEER_FP, MARIADB_OPT_TLS_PEER_FP_LIST};
#endif

/// Returns a handle that has read the option files and failed to connect. `verifies` is the value of
/// ssl-verify-server-cert if the files do not set it.
MysqlHandle read_files([[maybe_unused]] bool verifies) {
  MysqlHandle handle = new_mysql_handle();
  if (!handle) return handle;
  mysql_options(handle.get(), MYSQL_READ_DEFAULT_GROUP, "client");
#ifdef MARIADB_PACKAGE_VERSION
  const my_bool preset = verifies ? 1 : 0;
  mysql_optionsv(handle.get(), MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &preset);
#endif
  // The library reads the files when it connects. No server can listen at this address.
  mysql_real_connect(handle.get(), "localhost", nullptr, nullptr, nullptr, 1, "/dev/null/txinbox",
                     CLIENT_REMEMBER_OPTIONS);
  return handle;
}

#ifdef MARIADB_PACKAGE_VERSION
bool verifies(MYSQL* handle) {
  my_bool on = 0;
  mysql_get_optionv(handle, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &on);
  return on != 0;
}
#endif

}  // namespace

MysqlOptionFiles read_mysql_option_files() {
  MysqlOptionFiles files;
  const MysqlHandle read = read_files(false);
  if (!read) return files;
  MYSQL* db = read.get();
  if (db->options.password != nullptr) files.password = db->options.password;
#ifdef MARIADB_PACKAGE_VERSION
  for (const auto option : text_options) {
    const char* value = nullptr;
    if (mysql_get_optionv(db, option, &value) == 0 && value != nullptr && *value != '\0') files.tls[option] = value;
  }
  files.encrypts = db->options.use_ssl != 0;
  if (verifies(db)) {
    files.verifies = MysqlOptionFiles::Verifies::yes;
  } else if (const MysqlHandle again = read_files(true); again && !verifies(again.get())) {
    files.verifies = MysqlOptionFiles::Verifies::no;
  }
#endif
  return files;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
