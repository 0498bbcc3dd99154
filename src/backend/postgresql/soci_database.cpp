#include <libpq-fe.h>
#include <poll.h>
#include <soci/postgresql/soci-postgresql.h>
#include <soci/soci.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "backend/connection_string.hpp"
#include "backend/postgresql/native.hpp"
#include "backend/soci_database.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

constexpr auto unreachable = "08001";

/// The longest wait for the second attempt. A server that has just refused the connection refuses it again soon.
constexpr std::chrono::seconds patience{2};

/// Connects. Returns whether the attempt has ended in time.
bool connect(PGconn* connection) {
  using Clock = std::chrono::steady_clock;
  const auto give_up = Clock::now() + patience;
  auto next = PGRES_POLLING_WRITING;
  while (next != PGRES_POLLING_OK && next != PGRES_POLLING_FAILED) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(give_up - Clock::now());
    if (left.count() <= 0) return false;
    const int events = next == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    pollfd socket{PQsocket(connection), static_cast<short>(events), 0};
    poll(&socket, 1, static_cast<int>(left.count()));
    if (socket.revents != 0) next = PQconnectPoll(connection);
  }
  return true;
}

/// Returns the SQLSTATE of a message that consists of a severity and a SQLSTATE: "FATAL:  28P01".
std::string_view state_in(std::string_view message) {
  const auto is_of_state = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'); };
  const auto end = message.find_last_not_of(" \n");
  if (end == std::string_view::npos) return {};
  message = message.substr(0, end + 1);
  const std::string_view last = message.substr(message.find_last_of(" \n") + 1);
  return last.size() == 5 && std::ranges::all_of(last, is_of_state) ? last : std::string_view();
}

/// Returns the SQLSTATE with which the server refuses this connection. Call it after a failed attempt. It connects once
/// more, for up to 2 seconds, because libpq reports the code only if this was requested before the attempt. It returns
/// "08001" if the server cannot be reached, or if it now accepts the connection.
std::string state_of_refusal(const std::string& conninfo) {
  const std::unique_ptr<PGconn, decltype(&PQfinish)> connection(PQconnectStart(conninfo.c_str()), &PQfinish);
  if (!connection || PQstatus(connection.get()) == CONNECTION_BAD) return unreachable;
  PQsetErrorVerbosity(connection.get(), PQERRORS_SQLSTATE);
  if (!connect(connection.get()) || PQstatus(connection.get()) == CONNECTION_OK) return unreachable;
  if (PQconnectionNeedsPassword(connection.get()) != 0) return "28P01";
  const std::string_view state = state_in(PQerrorMessage(connection.get()));
  return std::string(state.empty() ? unreachable : state);
}

class PostgresqlSociDatabase final : public SociDatabase {
 public:
  /// Returns a URI. SOCI searches the string for a parameter of its own, and changes blanks in it. A URI has none.
  std::string connection_string(const detail::Url& url, const PoolOptions& options) const override {
    detail::UrlParameters all = url.scheme == "soci" ? parameters_in(url.path) : parameters_of(url);
    const auto add_default = [&](std::string_view name, std::string value) {
      const bool given = std::ranges::find(all, name, &detail::UrlParameters::value_type::first) != all.end();
      if (!given) all.emplace_back(name, std::move(value));
    };
    using std::chrono::ceil;
    using std::chrono::seconds;
    add_default("connect_timeout", std::to_string(ceil<seconds>(options.connect_timeout).count()));
    add_default("keepalives", "1");
    add_default("keepalives_idle", "60");
    add_default("keepalives_interval", "10");
    add_default("keepalives_count", "6");
    // This time-out applies if the server's host does not confirm data. It is a little longer than the longest
    // statement.
    add_default("tcp_user_timeout", std::to_string(longest_statement(options).count()));
    add_default("application_name", "txinbox");
    return uri_of(all);
  }

  const soci::backend_factory& factory() const noexcept override { return soci::postgresql; }

  std::unique_ptr<soci::session> open(const soci::backend_factory& factory, const std::string& connection_string,
                                      const detail::UrlParameters& parameters) const override {
    try {
      return SociDatabase::open(factory, connection_string, parameters);
    } catch (const soci::postgresql_soci_error& e) {
      throw soci::postgresql_soci_error(without_values(e.what(), parameters), e.sqlstate().c_str());
    } catch (const soci::soci_error& e) {
      throw soci::postgresql_soci_error(without_values(e.what(), parameters),
                                        state_of_refusal(connection_string).c_str());
    }
  }

  std::optional<std::string> refusal(const std::string& code, const std::string& /*unused*/) const override {
    // The codes are invalid_authorization_specification, invalid_password, invalid_catalog_name,
    // insufficient_privilege.
    if (!code.starts_with("28") && code != "3D000" && code != "42501") return std::nullopt;
    return fmt::format(
        "the server refuses this user, password or database (postgresql {}); check the URL, the password's source and "
        "the user's rights",
        code);
  }

  void* handle_of(soci::session& sql) const noexcept override {
    auto* backend = static_cast<soci::postgresql_session_backend*>(sql.get_backend());
    return backend == nullptr ? nullptr : backend->conn_;
  }

  std::optional<std::string> code_of(const soci::soci_error& error) const override {
    const auto* e = dynamic_cast<const soci::postgresql_soci_error*>(&error);
    if (e == nullptr) return std::nullopt;
    return e->sqlstate();
  }

  void raise(void* /*handle*/, const std::string& code, const std::string& text) const override {
    throw SociDatabaseError<soci::postgresql_soci_error>(postgresql_name, code, text, code.c_str());
  }

 private:
  static detail::UrlParameters parameters_of(const detail::Url& url) {
    detail::UrlParameters all;
    const auto add = [&](std::string_view name, const std::string& value) {
      if (!value.empty()) all.emplace_back(name, value);
    };
    add("host", url.host);
    add("port", url.port);
    add("user", url.user);
    add("password", url.password);
    add("dbname", url.path);
    for (const auto& [name, value] : url.parameters) {
      refuse_unknown(name);
      add(name, value);
    }
    return all;
  }

  /// Checks the parameter here, because libpq would report the error only when it connects.
  static void refuse_unknown(const std::string& parameter) {
    const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> known(PQconndefaults(), &PQconninfoFree);
    if (!known) return;
    for (const PQconninfoOption* each = known.get(); each->keyword != nullptr; ++each) {
      if (parameter == each->keyword) return;
    }
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("the parameter '{}' of the PostgreSQL URL is not known to libpq; check its spelling", parameter));
  }

  /// Returns the parameters of a connection string. libpq's own error text repeats words of the string, and such a word
  /// can be part of a password.
  static detail::UrlParameters parameters_in(const std::string& conninfo) {
    char* text = nullptr;
    const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(PQconninfoParse(conninfo.c_str(), &text),
                                                                               &PQconninfoFree);
    PQfreemem(text);
    if (!options) {
      throw Error(ErrorCode::invalid_argument,
                  "the PostgreSQL connection string cannot be parsed; check its names, and quote values with blanks");
    }
    detail::UrlParameters all;
    for (const PQconninfoOption* each = options.get(); each->keyword != nullptr; ++each) {
      if (each->val != nullptr) all.emplace_back(each->keyword, each->val);
    }
    return all;
  }

  static std::string uri_of(const detail::UrlParameters& parameters) {
    std::string uri = "postgresql://";
    char separator = '?';
    for (const auto& [name, value] : parameters) {
      uri += separator + name + '=';
      for (const char c : value) uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
      separator = '&';
    }
    return uri;
  }
};

}  // namespace

// The adapter to SOCI refers to this function.
extern "C" const SociDatabase* txinbox_postgresql_soci() noexcept {
  static const PostgresqlSociDatabase database;
  return &database;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
