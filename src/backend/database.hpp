#pragma once

// The one interface behind which databases differ. ARCHITECTURE.md says what a new database touches.

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/pool_options.hpp>
#include <txinbox/version.hpp>

#include "backend/catalog.hpp"
#include "backend/dialect.hpp"
#include "backend/error_class.hpp"
#include "backend/error_meaning.hpp"
#include "backend/native_connection.hpp"
#include "backend/scratch_sql.hpp"
#include "backend/session.hpp"
#include "base/url.hpp"

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

  /// The name of the folder with its migrations, which is also what SOCI calls it.
  virtual std::string_view name() const noexcept = 0;

  /// What its URLs name.
  virtual detail::UrlKind url_kind() const noexcept { return detail::UrlKind::server; }

  /// The file that a URL names, which opening would create. Empty if there is none.
  virtual std::string file_of(const detail::Url&) const { return {}; }

  /// What a code of this database means. A code that is not known is `ErrorClass::other`, without a text.
  virtual ErrorMeaning meaning_of(const std::string& code) const noexcept = 0;

  /// Describes an error of this database.
  virtual ErrorDescription describe(const std::string& code) const = 0;

  /// The inbox on one connection.
  virtual std::unique_ptr<Session> attach(ConnectionPtr, Ownership) const = 0;

  virtual std::unique_ptr<Catalog> catalog(ConnectionPtr) const = 0;

  /// Throws if a caller's new connection cannot be used at all. `handle` is not null.
  ///
  /// Errors: `Error` invalid_argument if it was not opened, unsupported_database if the client library is another one
  ///         than that of the build.
  virtual void refuse_unopened(void* handle) const = 0;

  /// Throws if a caller's connection cannot run a statement now because of what the caller has begun on it.
  ///
  /// Errors: `Error` unsafe_connection.
  virtual void refuse_unusable(const NativeConnection&) const {}

  /// Runs one query and fetches all rows as text. For small results that no delivery needs.
  virtual std::vector<Row> query(const NativeConnection&, const std::string& sql, std::size_t columns) const = 0;

  /// Runs one statement and drops its rows.
  virtual void run(const NativeConnection&, const std::string& sql) const = 0;

  /// Keeps the codes of the errors that a handler gets on a caller's connection, where the client library does not.
  virtual void keep_error_codes(const NativeConnection&) const {}

  /// Keeps the client library from writing the server's notices to standard error: they can hold values of a message.
  virtual void hide_notices(const NativeConnection&) const {}

  /// Gives the session a name that the server shows, where there is such a name.
  virtual void name_session(const NativeConnection&, const std::string& /*name*/) const {}

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
