#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "backend/connection_string.hpp"
#include "backend/database.hpp"
#include "backend/hidden_values.hpp"
#include "backend/postgresql/catalog.hpp"
#include "backend/postgresql/dialect.hpp"
#include "backend/postgresql/error_meaning.hpp"
#include "backend/postgresql/refusal.hpp"
#include "backend/postgresql/session.hpp"
#include "backend/postgresql/user_sql.hpp"
#include "base/url.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

class PostgresqlDatabase final : public Database {
 public:
  std::string_view name() const noexcept override { return "postgresql"; }

  std::string connection_string(const detail::Url& url, const PoolOptions& options) const override {
    std::string conninfo = url.scheme == "soci" ? url.path : std::string();
    const auto add = [&](std::string_view name, std::string_view value) {
      if (!value.empty()) append_parameter(conninfo, name, value);
    };
    for (const auto& parameter : url.parameters) refuse_unknown(parameter.first);
    add("host", url.host);
    add("port", url.port);
    add("user", url.user);
    add("password", url.password);
    if (url.scheme != "soci") add("dbname", url.path);
    for (const auto& [name, value] : url.parameters) add(name, value);

    const auto given = [&](std::string_view name) {
      if (url.scheme != "soci") {
        return std::ranges::any_of(url.parameters, [&](const auto& parameter) { return parameter.first == name; });
      }
      return conninfo.find(std::string(name) + "=") != std::string::npos ||
             conninfo.find(std::string(name) + " =") != std::string::npos;
    };
    const auto add_default = [&](std::string_view name, const std::string& value) {
      if (!given(name)) append_parameter(conninfo, name, value);
    };
    using std::chrono::ceil;
    using std::chrono::seconds;
    add_default("connect_timeout", std::to_string(ceil<seconds>(options.connect_timeout).count()));
    add_default("keepalives", "1");
    add_default("keepalives_idle", "60");
    add_default("keepalives_interval", "10");
    add_default("keepalives_count", "6");
    // For data that the server's host does not confirm: a little longer than any statement may take.
    add_default("tcp_user_timeout", std::to_string(longest_statement(options).count()));
    add_default("application_name", "txinbox");
    if (url.scheme == "soci") refuse_malformed(conninfo);
    return conninfo;
  }

  const soci::backend_factory& factory() const noexcept override { return soci::postgresql; }

  std::unique_ptr<soci::session> open(const soci::backend_factory& factory, const std::string& connection_string,
                                      const detail::UrlParameters& parameters) const override {
    try {
      return Database::open(factory, connection_string, parameters);
    } catch (const soci::postgresql_soci_error& e) {
      throw soci::postgresql_soci_error(without_values(e.what(), parameters), e.sqlstate().c_str());
    } catch (const soci::soci_error& e) {
      throw soci::postgresql_soci_error(without_values(e.what(), parameters),
                                        postgresql_state_of_refusal(connection_string).c_str());
    }
  }

  std::optional<std::string> refusal(const soci::soci_error& error, const std::string& /*unused*/) const override {
    const auto* e = dynamic_cast<const soci::postgresql_soci_error*>(&error);
    if (e == nullptr) return std::nullopt;
    const std::string state = e->sqlstate();
    // invalid_authorization_specification, invalid_password; invalid_catalog_name; insufficient_privilege
    if (!state.starts_with("28") && state != "3D000" && state != "42501") return std::nullopt;
    return fmt::format(
        "the server refuses this user, password or database (postgresql {}); check the URL, the password's source and "
        "the user's rights",
        state);
  }

  std::optional<ErrorClass> classify(const soci::soci_error& error) const noexcept override {
    const auto* e = dynamic_cast<const soci::postgresql_soci_error*>(&error);
    if (e == nullptr) return std::nullopt;
    return postgresql_meaning(e->sqlstate()).error_class;
  }

  std::string code_of(const soci::soci_error& error) const override {
    return static_cast<const soci::postgresql_soci_error&>(error).sqlstate();
  }

  ErrorDescription describe(const soci::soci_error& error) const override {
    const std::string state = static_cast<const soci::postgresql_soci_error&>(error).sqlstate();
    if (state.find_first_not_of(' ') == std::string::npos) return {.what = "PostgreSQL error without a code"};
    return {.what = "PostgreSQL SQLSTATE", .code = state, .meaning = postgresql_meaning(state).text};
  }

  // libpq writes notices and warnings to standard error.
  void hide_notices(soci::session& sql) const override {
    exec(postgresql_native(sql), "SET client_min_messages = error");
  }

  void name_session(soci::session& sql, const std::string& name) const override {
    PGconn* pg = postgresql_native(sql);
    exec(pg, "SET application_name = " + quote_literal(pg, name));
  }

  using Database::attach;
  std::unique_ptr<Session> attach(std::unique_ptr<NativeConnection> connection, Ownership ownership) const override {
    return std::make_unique<PostgresqlSession>(std::move(connection), ownership);
  }
  std::unique_ptr<NativeConnection> native_connection(soci::session& sql) const override {
    return std::make_unique<SociConnection<postgresql_native>>(sql);
  }

  std::unique_ptr<Catalog> catalog(soci::session& sql) const override { return make_postgresql_catalog(sql); }

  std::unique_ptr<Dialect> dialect(const std::string& schema) const override { return make_postgresql_dialect(schema); }

  const UserSql& user_sql() const noexcept override { return postgresql_user_sql(); }

  ScratchSql scratch_sql() const override {
    return {
        .key_type = "text collate \"C\"",
        .as_text = "convert_from({}, 'UTF8')",
        .error_ends_transaction = true,
        .count_open = "select count(*) from pg_stat_activity where application_name = :n and xact_start is not null"};
  }

 private:
  /// Checks it here, because libpq would report it only with the failed connection.
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

  /// libpq's own text repeats words of the string, and a word can be part of a password.
  static void refuse_malformed(const std::string& conninfo) {
    char* text = nullptr;
    PQconninfoOption* const options = PQconninfoParse(conninfo.c_str(), &text);
    PQfreemem(text);
    if (options == nullptr) {
      throw Error(ErrorCode::invalid_argument,
                  "the PostgreSQL connection string cannot be parsed; check its names, and quote values with blanks");
    }
    PQconninfoFree(options);
  }
};

}  // namespace

// registry.cpp lists it.
extern "C" const Database* txinbox_postgresql_database() noexcept {
  static const PostgresqlDatabase database;
  return &database;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
