#include "soci_adapter/soci_connection.hpp"

#include <array>
#include <exception>
#include <string>

#include <soci/error.h>
#include <soci/session.h>
#include <txinbox/connection_ref.hpp>
#include <txinbox/error.hpp>
#include <txinbox/native.hpp>
#include <txinbox/soci/execute.hpp>

#include "backend/database_error.hpp"
#include "backend/registry.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

// The folder of the database defines this function. The reference is weak: it is null if the database is not linked.
#define TXINBOX_DECLARE(name, ...) [[gnu::weak]] const SociDatabase* txinbox_##name##_soci() noexcept;
extern "C" {
TXINBOX_FOR_EACH_DATABASE(TXINBOX_DECLARE)
}
#undef TXINBOX_DECLARE

namespace {

struct Known {
  std::string_view name;
  const SociDatabase* linked;  // null if the database is not linked
};

const auto& known_databases() {
#define TXINBOX_LIST(name, ...) Known{#name, txinbox_##name##_soci == nullptr ? nullptr : txinbox_##name##_soci()},
  static const std::array known = {TXINBOX_FOR_EACH_DATABASE(TXINBOX_LIST)};
#undef TXINBOX_LIST
  return known;
}

/// The connection of a SOCI session.
class SociConnection final : public NativeConnection {
 public:
  SociConnection(const Database& database, const SociDatabase& in_soci, soci::session& sql) noexcept
      : NativeConnection(database), in_soci_(in_soci), sql_(sql) {}

  void* handle() const noexcept override { return in_soci_.handle_of(sql_); }
  const void* identity() const noexcept override { return sql_.get_backend(); }
  soci::session* soci() const noexcept override { return &sql_; }

 private:
  const SociDatabase& in_soci_;
  soci::session& sql_;
};

}  // namespace

const SociDatabase& soci_database_named(std::string_view name) {
  for (const Known& each : known_databases()) {
    if (each.name == name && each.linked != nullptr) return *each.linked;
  }
  throw Error(ErrorCode::unsupported_database,
              "the database '" + std::string(name) + "' is not known to this build of txinbox with SOCI");
}

const Database& database_of(soci::session& sql) {
  if (sql.get_backend() == nullptr) {
    throw Error(ErrorCode::unsupported_database, "the SOCI session is not connected; open it first");
  }
  return database_named(sql.get_backend_name());
}

ConnectionPtr connection_of(soci::session& sql) {
  const Database& database = database_of(sql);
  return std::make_shared<SociConnection>(database, soci_database_named(database.name()), sql);
}

std::unique_ptr<soci::session> SociDatabase::open(const soci::backend_factory& factory,
                                                  const std::string& connection_string,
                                                  const detail::UrlParameters&) const {
  return std::make_unique<soci::session>(factory, connection_string);
}

void throw_soci_error(std::string_view database, void* handle, const std::string& code, const std::string& text) {
  soci_database_named(database).raise(handle, code, text);
  std::terminate();  // `raise` does not return
}

/// Asks the databases in order; the first one that knows the error decides. An error that SOCI itself throws has no
/// code. The text omits SOCI's context, which contains all values of the statement.
std::optional<DatabaseErrorCode> current_soci_error() noexcept {
  try {
    throw;
  } catch (const soci::soci_error& error) {
    for (const Known& each : known_databases()) {
      if (each.linked == nullptr) continue;
      if (auto code = each.linked->code_of(error)) {
        return DatabaseErrorCode{find_database(each.name), std::move(*code), error.get_error_message()};
      }
    }
    return DatabaseErrorCode{.text = error.get_error_message()};
  } catch (...) {
    return std::nullopt;
  }
}

}  // namespace backend

namespace detail {

backend::ConnectionPtr soci_connection(soci::session& session) { return backend::connection_of(session); }

void check_prepared(soci::session& sql, soci::details::statement_backend& statement, const std::string& text,
                    std::size_t parameters) {
  const backend::Database& database = backend::database_of(sql);
  backend::soci_database_named(database.name()).check_prepared(sql, statement, text, parameters);
}

}  // namespace detail

NativeHandle native_handle(soci::session& session) {
  const auto connection = backend::connection_of(session);
  return {connection->database().name(), connection->handle()};
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
