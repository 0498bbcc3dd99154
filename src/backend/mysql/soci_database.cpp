#include <soci/mysql/soci-mysql.h>
#include <soci/soci.h>

#include <mysqld_error.h>

#include <fmt/format.h>

#include "backend/connection_string.hpp"
#include "backend/mysql/native.hpp"
#include "backend/mysql/tls.hpp"
#include "backend/soci_database.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

class MysqlSociDatabase final : public SociDatabase {
 public:
  std::string connection_string(const detail::Url& url, const PoolOptions& options) const override {
    using std::chrono::ceil;
    using std::chrono::seconds;
    std::string string = url.scheme == "soci" ? url.path : std::string();
    const auto connect_timeout = ceil<seconds>(options.connect_timeout).count();
    if (url.scheme == "soci") {
      refuse_weak_tls(string);
    } else {
      add_url(string, url);
    }
    const auto add_default = [&](std::string_view name, auto value) {
      if (string.find(std::string(name) + "=") == std::string::npos)
        append_parameter(string, name, std::to_string(value));
    };
    const auto silence = ceil<seconds>(longest_statement(options)).count();
    add_default("connect_timeout", connect_timeout);
    add_default("read_timeout", silence);
    add_default("write_timeout", silence);
    return string;
  }

  const soci::backend_factory& factory() const noexcept override { return mysql_factory(); }

  std::unique_ptr<soci::session> open(const soci::backend_factory& factory, const std::string& connection_string,
                                      const detail::UrlParameters& parameters) const override {
    try {
      return SociDatabase::open(factory, connection_string, parameters);
    } catch (const soci::mysql_soci_error& e) {
      throw soci::mysql_soci_error(without_values(e.what(), parameters), static_cast<int>(e.err_num_));
    }
  }

  std::optional<std::string> refusal(const std::string& code, const std::string& /*unused*/) const override {
    constexpr unsigned er_must_change_password_login = 1862;
    constexpr unsigned er_account_locked_mysql = 3118;
    constexpr unsigned er_account_locked_mariadb = 4151;
    switch (number_in(code)) {
      case ER_ACCESS_DENIED_ERROR:
      case ER_ACCESS_DENIED_NO_PASSWORD_ERROR:
      case ER_DBACCESS_DENIED_ERROR:
      case ER_BAD_DB_ERROR:
      case ER_HOST_NOT_PRIVILEGED:
      case ER_MUST_CHANGE_PASSWORD:
      case er_must_change_password_login:
      case er_account_locked_mysql:
      case er_account_locked_mariadb:
        return fmt::format(
            "the server refuses this user, password or database (mysql {}); check the URL, the password's source and "
            "the user's rights",
            code);
      default:
        return std::nullopt;
    }
  }

  void* handle_of(soci::session& sql) const noexcept override {
    auto* backend = static_cast<soci::mysql_session_backend*>(sql.get_backend());
    return backend == nullptr ? nullptr : backend->conn_;
  }

  std::optional<std::string> code_of(const soci::soci_error& error) const override {
    const auto* e = dynamic_cast<const soci::mysql_soci_error*>(&error);
    if (e == nullptr) return std::nullopt;
    return std::to_string(e->err_num_);
  }

  void raise(void* /*handle*/, const std::string& code, const std::string& text) const override {
    throw SociDatabaseError<soci::mysql_soci_error>(mysql_name, code, text, static_cast<int>(number_in(code)));
  }

 private:
  static void add_url(std::string& string, const detail::Url& url) {
    for (const auto& [name, value] : url.parameters) {
      if (name != "unix_socket" && name != "charset" && !is_tls_parameter(name)) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("the parameter '{}' of the MySQL URL is not known; unix_socket, sslmode, sslca, "
                                "sslcert, sslkey and charset are",
                                name));
      }
    }
    if (url.path.empty()) {
      throw Error(ErrorCode::invalid_argument, "the MySQL URL names no database; write mysql://user@host:3306/db");
    }
    if (url.host.find(',') != std::string::npos) {
      throw Error(ErrorCode::invalid_argument,
                  "the MySQL URL names several hosts, and the client library takes one; name a proxy, or one server");
    }
    const MysqlOptionFiles files = read_mysql_option_files();
    const auto add = [&](std::string_view name, std::string_view value) {
      if (!value.empty()) append_parameter(string, name, value);
    };
    add("host", mysql_host(url, files));
    add("port", url.port);
    add("user", url.user);
    add("password", url.password.empty() ? files.password : url.password);
    add("db", url.path);
    for (const auto& [name, value] : url.parameters) {
      if (!is_tls_parameter(name)) add(name, value);
    }
  }
};

}  // namespace

// The adapter to SOCI refers to this function.
extern "C" const SociDatabase* txinbox_mysql_soci() noexcept {
  static const MysqlSociDatabase database;
  return &database;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
