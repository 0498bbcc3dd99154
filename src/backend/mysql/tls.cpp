#include "backend/mysql/tls.hpp"

#include <soci/mysql/soci-mysql.h>
#include <soci/soci.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <txinbox/error.hpp>

#include "backend/mysql/native.hpp"
#include "base/hex.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

/// The modes of libpq. Each mode is stronger than the one before it.
enum class Mode { unsaid, disable, require, verify_ca, verify_full };

struct ModeName {
  std::string_view name;
  Mode mode;
};
// `prefer` does not exist here. Suppose that MariaDB's library must encrypt, and the server, or an attacker between,
// offers no encryption. Then the library treats the connection as encrypted, and may send the password as plain text.
constexpr std::array mode_names = {ModeName{"disable", Mode::disable}, ModeName{"require", Mode::require},
                                   ModeName{"verify-ca", Mode::verify_ca}, ModeName{"verify-full", Mode::verify_full}};

/// The TLS settings that one connection asks for.
struct Tls {
  Mode mode = Mode::unsaid;
  std::map<mysql_option, std::string> options;
};

/// The prefix of a host name that makes the library call our `connect`. The real host and the TLS settings follow it.
constexpr std::string_view handler_name = "txinbox-tls";

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorCode::invalid_argument, "the MySQL URL's " + why); }

#ifdef MARIADB_PACKAGE_VERSION

bool has(const Tls& tls, mysql_option option) { return tls.options.contains(option); }

bool has_ca(const Tls& tls) { return has(tls, MYSQL_OPT_SSL_CA) || has(tls, MYSQL_OPT_SSL_CAPATH); }

Mode mode_of(std::string_view value) {
  const auto* found =
      std::ranges::find_if(mode_names, [&](const ModeName& mode_name) { return mode_name.name == value; });
  if (found == mode_names.end()) {
    refuse("parameter 'sslmode' is not one of disable, require, verify-ca and verify-full");
  }
  return found->mode;
}

void check_readable(const Tls& tls, mysql_option option, std::string_view parameter, std::string_view file_option) {
  const auto found = tls.options.find(option);
  if (found == tls.options.end() || access(found->second.c_str(), R_OK) == 0) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("the file that '{}' of the MySQL URL, or '{}' in a MariaDB option file, names cannot be read: "
                  "{}",
                  parameter, file_option, std::system_category().message(errno)));
}

/// Adds the options of `files` that the URL does not set.
void add_files(const MysqlOptionFiles& files, Tls& tls) {
  const bool own_ca = has(tls, MYSQL_OPT_SSL_CA);
  const bool own_certificate = has(tls, MYSQL_OPT_SSL_CERT) || has(tls, MYSQL_OPT_SSL_KEY);
  for (const auto& [option, value] : files.tls) {
    const bool is_ca = option == MYSQL_OPT_SSL_CA || option == MYSQL_OPT_SSL_CAPATH;
    const bool is_certificate =
        option == MYSQL_OPT_SSL_CERT || option == MYSQL_OPT_SSL_KEY || option == MARIADB_OPT_TLS_PASSPHRASE;
    if (!(is_ca && own_ca) && !(is_certificate && own_certificate)) tls.options.emplace(option, value);
  }
}

/// Returns the mode if there is no `sslmode`. The library ignores an ssl-verify-server-cert without a value, but other
/// clients read it as 1. So if an option file names an authority, the certificate is verified, unless the value is 0.
Mode implied_mode(const Tls& tls, const MysqlOptionFiles& files, bool own_ca) {
  using Verifies = MysqlOptionFiles::Verifies;
  const bool asked = has_ca(tls) && !own_ca && files.verifies != Verifies::no;
  if (asked || files.verifies == Verifies::yes) return Mode::verify_full;
  if (has_ca(tls)) return Mode::verify_ca;
  return files.encrypts || !tls.options.empty() ? Mode::require : Mode::unsaid;
}

Tls tls_for(const detail::Url& url, const MysqlOptionFiles& files) {
  Tls tls;
  for (const auto& [name, value] : url.parameters) {
    if (is_tls_parameter(name) && value.empty()) refuse(fmt::format("parameter '{}' has no value", name));
    if (name == "sslmode") tls.mode = mode_of(value);
    if (name == "sslca") tls.options[MYSQL_OPT_SSL_CA] = value;
    if (name == "sslcert") tls.options[MYSQL_OPT_SSL_CERT] = value;
    if (name == "sslkey") tls.options[MYSQL_OPT_SSL_KEY] = value;
  }
  if (tls.mode == Mode::disable) {
    if (!tls.options.empty()) {
      refuse("parameters 'sslca', 'sslcert' and 'sslkey' need sslmode=require, verify-ca or verify-full, or none");
    }
    return tls;
  }
  const bool own_ca = has(tls, MYSQL_OPT_SSL_CA);
  add_files(files, tls);
  if (tls.mode == Mode::unsaid) tls.mode = implied_mode(tls, files, own_ca);
  if (tls.mode == Mode::require && has_ca(tls)) tls.mode = Mode::verify_ca;
  if (tls.mode == Mode::verify_ca && !has_ca(tls)) {
    refuse(
        "parameter sslmode=verify-ca needs sslca=FILE; with the system's authorities use verify-full, because anybody "
        "can get a certificate from them");
  }
  check_readable(tls, MYSQL_OPT_SSL_CA, "sslca", "ssl-ca");
  check_readable(tls, MYSQL_OPT_SSL_CAPATH, "sslca", "ssl-capath");
  check_readable(tls, MYSQL_OPT_SSL_CERT, "sslcert", "ssl-cert");
  check_readable(tls, MYSQL_OPT_SSL_KEY, "sslkey", "ssl-key");
  return tls;
}

/// Writes the host and its TLS settings as hexadecimal digits, so that the text contains no syntax of SOCI or of the
/// client library.
std::string written(const std::string& host, const Tls& tls) {
  std::string fields = fmt::format("{}", static_cast<int>(tls.mode)) + '\0' + host + '\0';
  for (const auto& [option, value] : tls.options)
    fields += fmt::format("{}", static_cast<int>(option)) + '\0' + value + '\0';
  return fmt::format("{}://{}", handler_name, detail::to_hex(fields));
}

std::pair<std::string, Tls> read(std::string_view hex) {
  const std::string fields = detail::from_hex(hex);
  std::size_t at = 0;
  const auto next = [&] {
    const std::size_t from = std::exchange(at, fields.find('\0', at) + 1);
    return fields.substr(from, at - from - 1);
  };
  Tls tls;
  tls.mode = static_cast<Mode>(std::stoi(next()));
  std::string host = next();
  while (at < fields.size()) {
    const auto option = static_cast<mysql_option>(std::stoi(next()));
    tls.options[option] = next();
  }
  return {std::move(host), std::move(tls)};
}

void set_options(MYSQL* connection, const Tls& tls) {
  const auto set = [connection](mysql_option option, bool value) {
    const my_bool on = value ? 1 : 0;
    mysql_optionsv(connection, option, &on);
  };
  set(MYSQL_OPT_SSL_ENFORCE, tls.mode != Mode::disable);  // the library does not enforce it
  set(MYSQL_OPT_SSL_VERIFY_SERVER_CERT, tls.mode == Mode::verify_full);
  for (const auto& [option, value] : tls.options) mysql_optionsv(connection, option, value.c_str());
  // If the server offers no encryption, the library continues without it, unless it has a fingerprint to compare. It
  // does not compare an empty fingerprint.
  const bool has_fingerprint = has(tls, MARIADB_OPT_TLS_PEER_FP) || has(tls, MARIADB_OPT_TLS_PEER_FP_LIST);
  if (tls.mode >= Mode::require && !has_fingerprint) mysql_optionsv(connection, MARIADB_OPT_TLS_PEER_FP, "");
}

/// The library calls this function for a host that begins with `handler_name`://, and passes the rest of the host.
MYSQL* connect(MYSQL* connection, const char* written, const char* user, const char* password, const char* database,
               unsigned port, const char* socket, unsigned long flags) noexcept {
  try {
    const auto [host, tls] = read(written);
    set_options(connection, tls);
    return mysql_real_connect(connection, host.empty() ? nullptr : host.c_str(), user, password, database, port, socket,
                              flags);
  } catch (const std::exception&) {  // no memory
    return nullptr;
  }
}

int before_command(MYSQL*, enum_server_command, const char*, std::size_t, my_bool, void*) noexcept { return 0; }

/// The layout of MARIADB_CONNECTION_PLUGIN in <mysql/client_plugin.h>. That header includes another header, which
/// Debian's package does not have. The library compares the version of the interface.
struct ConnectionPlugin {
  int type = 103;                           // MARIADB_CLIENT_CONNECTION_PLUGIN
  unsigned int interface_version = 0x0100;  // MARIADB_CLIENT_CONNECTION_PLUGIN_INTERFACE_VERSION
  const char* name = handler_name.data();
  const char* author = "txinbox";
  const char* description = "TLS that is required";
  std::array<unsigned int, 3> version = {1, 0, 0};
  const char* license = "";
  void* mysql_api = nullptr;
  int (*init)(char*, std::size_t, int, va_list) = nullptr;
  int (*deinit)() = nullptr;
  int (*options)(const char*, const void*) = nullptr;
  MYSQL* (*connect)(MYSQL*, const char*, const char*, const char*, const char*, unsigned int, const char*,
                    unsigned long) = backend::connect;
  void (*close)(MYSQL*) = nullptr;
  int (*set_options)(MYSQL*, unsigned int, ...) = nullptr;
  int (*set_connection)(MYSQL*, enum_server_command, const char*, std::size_t, my_bool, void*) = before_command;
  my_bool (*reconnect)(MYSQL*) = nullptr;
  int (*reset)(MYSQL*) = nullptr;
};

/// Registers the handler. Call it before each connection, because mysql_library_end makes the library forget the
/// handler. A second registration does nothing.
void register_handler() {
  static ConnectionPlugin plugin;
  const MysqlHandle scratch = new_mysql_handle();
  if (scratch) mysql_client_register_plugin(scratch.get(), reinterpret_cast<st_mysql_client_plugin*>(&plugin));
}

bool requires_tls(const std::string& connection_string) {
  const std::string mark = fmt::format("{}://", handler_name);
  const std::size_t at = connection_string.find(mark);
  if (at == std::string::npos) return false;
  const std::size_t from = at + mark.size();
  const std::size_t end = connection_string.find_first_not_of("0123456789abcdef", from);
  return read(std::string_view(connection_string).substr(from, end - from)).second.mode >= Mode::require;
}

#endif

/// Returns the part of SOCI's connection string that is outside quotation marks.
std::string without_quoted(std::string_view connection_string) {
  std::string bare;
  bool quoted = false;
  for (std::size_t i = 0; i < connection_string.size(); ++i) {
    const char c = connection_string[i];
    if (c == '\'') {
      quoted = !quoted;
    } else if (quoted && c == '\\') {
      ++i;
    } else if (!quoted) {
      bare += c;
    }
  }
  return bare;
}

/// Do not use `soci::mysql` here: the compiler knows its class, and would call a function that the library does not
/// export.
const soci::backend_factory& soci_factory() noexcept { return *soci::factory_mysql(); }

class MysqlFactory final : public soci::backend_factory {
 public:
  soci::details::session_backend* make_session(const soci::connection_parameters& parameters) const override {
#ifdef MARIADB_PACKAGE_VERSION
    register_handler();
    std::unique_ptr<soci::details::session_backend> session(soci_factory().make_session(parameters));
    MYSQL* connection = static_cast<soci::mysql_session_backend&>(*session).conn_;
    // The library should already have refused a server without encryption, but its documentation does not say so.
    if (requires_tls(parameters.get_connect_string()) && mysql_get_ssl_cipher(connection) == nullptr) {
      throw Error(ErrorCode::unsafe_connection,
                  "the connection to MariaDB or MySQL is not encrypted, although the connection string asks for it; "
                  "enable TLS on the server");
    }
    return session.release();
#else
    return soci_factory().make_session(parameters);
#endif
  }
};

}  // namespace

void refuse_weak_tls(std::string_view soci_string) {
  if (without_quoted(soci_string).find("sslca") == std::string::npos) return;
  throw Error(ErrorCode::unsafe_connection,
              "'sslca' in a connection string of SOCI's does not keep the client from a connection without encryption, "
              "on which it can send the password as it is; write a URL: mysql://user@host/db?sslca=FILE");
}

bool is_tls_parameter(std::string_view name) {
  return name == "sslmode" || name == "sslca" || name == "sslcert" || name == "sslkey";
}

std::string mysql_host(const detail::Url& url, const MysqlOptionFiles& files) {
  // The library would read such a host as options, or as the name of an extension.
  if (url.host.find_first_of(";=") != std::string::npos || url.host.find("://") != std::string::npos) {
    refuse("host holds ';', '=' or '://', which are in no host's name");
  }
#ifdef MARIADB_PACKAGE_VERSION
  const Tls tls = tls_for(url, files);
  return tls.mode == Mode::unsaid ? url.host : written(url.host, tls);
#else
  if (std::ranges::any_of(url.parameters, [](const auto& parameter) { return is_tls_parameter(parameter.first); })) {
    throw Error(ErrorCode::unsafe_connection,
                "TLS by the database URL needs MariaDB's client library; this build of txinbox has MySQL's");
  }
  return url.host;
#endif
}

const soci::backend_factory& mysql_factory() noexcept {
  static const MysqlFactory factory;
  return factory;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
