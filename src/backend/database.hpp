#pragma once

// The one interface behind which databases differ. ARCHITECTURE.md says what a new database touches.

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <txinbox/pool_options.hpp>
#include <txinbox/version.hpp>

#include "backend/catalog.hpp"
#include "backend/dialect.hpp"
#include "backend/error_class.hpp"
#include "backend/scratch_sql.hpp"
#include "backend/session.hpp"
#include "base/url.hpp"

namespace soci {
class session;
class soci_error;
class backend_factory;
}  // namespace soci

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

class UserSql;

/// An error of a database, in words that hold no bound value.
struct ErrorDescription {
  std::string_view what = {};     ///< "MariaDB/MySQL error".
  std::string code = {};          ///< Empty for an error without one.
  std::string_view meaning = {};  ///< "deadlock"; empty for a code that we do not know.
  bool is_complete = false;       ///< The database's own text adds nothing but names of functions.
};

/// A kind of database.
class Database {
 public:
  virtual ~Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// The name that SOCI uses, and the name of the folder with its migrations.
  virtual std::string_view name() const noexcept = 0;

  /// What its URLs name.
  virtual detail::UrlKind url_kind() const noexcept { return detail::UrlKind::server; }

  /// The file that a URL names, which opening would create. Empty if there is none.
  virtual std::string file_of(const detail::Url&) const { return {}; }

  /// The connection string for SOCI. It holds the time-outs of the options, and may hold a password that the client
  /// library has read from its own files.
  virtual std::string connection_string(const detail::Url&, const PoolOptions&) const = 0;

  /// SOCI's factory, which opens connections to this database.
  virtual const soci::backend_factory& factory() const noexcept = 0;

  /// Opens a session by `factory`, which must outlive it. The string is the one above, or the one that the user gave
  /// behind `soci:`. `parameters` are those of the URL. No error repeats the value of one, because a user may have
  /// written a password into the wrong one.
  virtual std::unique_ptr<soci::session> open(const soci::backend_factory& factory,
                                              const std::string& connection_string,
                                              const detail::UrlParameters& parameters) const;

  /// Explains why a session cannot be opened and how to fix it, if waiting does not help: the server refuses this user,
  /// password or database, or the file cannot be used. None for any other error.
  virtual std::optional<std::string> refusal(const soci::soci_error&, const std::string& connection_string) const = 0;

  /// None for an error of another database.
  virtual std::optional<ErrorClass> classify(const soci::soci_error&) const noexcept = 0;

  /// The code of an error of this database, as text.
  virtual std::string code_of(const soci::soci_error&) const = 0;

  /// Describes an error of this database.
  virtual ErrorDescription describe(const soci::soci_error&) const = 0;

  /// Throws an error of the last statement that SOCI did not report.
  virtual void check_last_statement(soci::session&) const {}

  /// Keeps the client library from writing the server's notices to standard error: they can hold values of a message.
  virtual void hide_notices(soci::session&) const {}

  /// Gives the session a name that the server shows, where there is such a name.
  virtual void name_session(soci::session&, const std::string& /*name*/) const {}

  /// The inbox on one connection.
  virtual std::unique_ptr<Session> attach(std::unique_ptr<NativeConnection>, Ownership) const = 0;

  /// The connection of a SOCI session to this database.
  virtual std::unique_ptr<NativeConnection> native_connection(soci::session&) const = 0;

  std::unique_ptr<Session> attach(soci::session& sql, Ownership ownership) const {
    return attach(native_connection(sql), ownership);
  }

  virtual std::unique_ptr<Catalog> catalog(soci::session&) const = 0;

  /// How it spells statements about the tables in `schema`.
  virtual std::unique_ptr<Dialect> dialect(const std::string& schema) const = 0;

  virtual ScratchSql scratch_sql() const = 0;

  /// How it takes the SQL of a user of the command.
  virtual const UserSql& user_sql() const noexcept = 0;

 protected:
  Database() = default;
};

/// How long the client waits for an answer before it treats the connection as lost. It is a little longer than the
/// server may work on one statement, so that the server's own time-outs come first.
inline std::chrono::milliseconds longest_statement(const PoolOptions& options) {
  return std::max(options.statement_timeout, options.lock_timeout) + std::chrono::seconds(5);
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
