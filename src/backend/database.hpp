#pragma once

// The interface that hides the differences between databases. ARCHITECTURE.md lists what to change for a new database.

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
#include "backend/native_connection.hpp"
#include "backend/session.hpp"
#include "base/url.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// The description of a database error. It contains no value that was bound to a statement.
struct ErrorDescription {
  std::string_view what = {};     ///< For example "MariaDB/MySQL error".
  std::string code = {};          ///< Empty if the error has no code.
  std::string_view meaning = {};  ///< For example "deadlock". Empty if txinbox does not know the code.
  bool is_complete = false;       ///< The database's own text adds only names of functions.
};

/// A kind of database.
class Database {
 public:
  virtual ~Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// Returns the name of the folder with the migrations. SOCI uses the same name for the database.
  virtual std::string_view name() const noexcept = 0;

  /// Returns what the URLs of this database name: a server or a file.
  virtual detail::UrlKind url_kind() const noexcept { return detail::UrlKind::server; }

  /// Returns the file that a URL names. Opening the URL would create this file. Empty if the URL names no file.
  virtual std::string file_of(const detail::Url&) const { return {}; }

  /// Returns the meaning of an error code. An unknown code is `ErrorClass::other`, without a text.
  virtual ErrorMeaning meaning_of(const std::string& code) const noexcept = 0;

  /// Describes an error of this database.
  virtual ErrorDescription describe(const std::string& code) const = 0;

  /// Creates the session that runs the inbox's statements on one connection.
  virtual std::unique_ptr<Session> attach(ConnectionPtr, Ownership) const = 0;

  virtual std::unique_ptr<Catalog> catalog(ConnectionPtr) const = 0;

  /// Checks a caller's new connection. Throws if txinbox cannot use it at all. `handle` is not null.
  ///
  /// Errors: `Error` invalid_argument if the connection was not opened. `Error` unsupported_database if the program
  ///         uses another client library than the build.
  virtual void refuse_unopened(void* handle) const = 0;

  /// Throws if no statement can run on a caller's connection now, because the caller has begun something on it.
  ///
  /// Errors: `Error` unsafe_connection.
  virtual void refuse_unusable(const NativeConnection&) const {}

  /// Runs one query and fetches all rows as text. It is for small results that deliveries do not need.
  virtual std::vector<Row> query(const NativeConnection&, const std::string& sql, std::size_t columns) const = 0;

  /// Runs one statement and ignores its rows. Returns the number of rows that an INSERT, UPDATE or DELETE changed.
  virtual std::size_t run(const NativeConnection&, const std::string& sql) const = 0;

  /// Makes a caller's connection keep the codes of the errors that a handler gets. It does nothing if the client
  /// library keeps them itself.
  virtual void keep_error_codes(const NativeConnection&) const {}

  /// Stops the client library from writing the server's notices to standard error: notices can contain values of a
  /// message.
  virtual void hide_notices(const NativeConnection&) const {}

  /// For sessions that only read lists and counts: makes the server plan their queries without compiling them.
  /// PostgreSQL compiles a query that it takes for a long one (jit). This takes longer than the query: measured, 760 of
  /// 1,050 ms.
  virtual void do_not_compile(const NativeConnection&) const {}

  /// Gives the session a name that the server shows. It does nothing if the database has no such name.
  virtual void name_session(const NativeConnection&, const std::string& /*name*/) const {}

  /// Returns the syntax for statements about the tables in `schema`.
  virtual std::unique_ptr<Dialect> dialect(const std::string& schema) const = 0;

 protected:
  Database() = default;
};

/// How long the client waits for a reply before it treats the connection as lost. This is a little longer than the
/// server's limit for one statement, so that the server's own time-outs come first.
inline std::chrono::milliseconds longest_statement(const PoolOptions& options) {
  return std::max(options.statement_timeout, options.lock_timeout) + std::chrono::seconds(5);
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
