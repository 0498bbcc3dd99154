#pragma once

// The one seam where databases differ. A new database is a `Database` with its `Session`, its `Catalog` and its
// `Dialect`, and one line in registry.cpp.

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

/// A kind of database.
class Database {
 public:
  virtual ~Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// As SOCI calls it, and as the folder of its migrations is called.
  virtual std::string_view name() const noexcept = 0;

  /// The connection string for SOCI, with the options' time-outs in it. May ask the client library
  /// for a password that its own files hold.
  virtual std::string connection_string(const detail::Url&, const PoolOptions&) const = 0;

  /// SOCI's own, which opens this database's connections.
  virtual const soci::backend_factory& factory() const noexcept = 0;

  /// Opens a session by `factory`, which must outlive it; the string is SOCI's, as above or as the user gave it behind
  /// `soci:`. No error repeats a value of `parameters`, which are those of the URL: a password can stand in the wrong
  /// one.
  virtual std::unique_ptr<soci::session> open(const soci::backend_factory& factory,
                                              const std::string& connection_string,
                                              const detail::UrlParameters& parameters) const;

  /// Says in words why a session cannot be opened, and what to mend, if the server refuses this user, password or
  /// database, or the file cannot be used: an error that waiting does not mend. None for any other error.
  virtual std::optional<std::string> refusal(const soci::soci_error&, const std::string& connection_string) const = 0;

  /// None for an error of another database.
  virtual std::optional<ErrorClass> classify(const soci::soci_error&) const noexcept = 0;

  /// The code of an error of this database, as text.
  virtual std::string code_of(const soci::soci_error&) const = 0;

  /// Throws what SOCI kept to itself when it ran the last statement.
  virtual void check_last_statement(soci::session&) const {}

  virtual std::unique_ptr<Session> attach(soci::session&, Ownership) const = 0;
  virtual std::unique_ptr<Catalog> catalog(soci::session&) const = 0;

  /// How it spells statements about the tables in `schema`.
  virtual std::unique_ptr<Dialect> dialect(const std::string& schema) const = 0;

 protected:
  Database() = default;
};

/// How long the client waits for an answer before it takes the connection for dead: a little longer
/// than the server may work on one statement, so that the server's own time-outs come first.
inline std::chrono::milliseconds longest_statement(const PoolOptions& options) {
  return std::max(options.statement_timeout, options.lock_timeout) + std::chrono::seconds(5);
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
