#pragma once

// The differences between databases in SOCI. Only the adapter to SOCI includes this header.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <txinbox/error.hpp>
#include <txinbox/pool_options.hpp>
#include <txinbox/version.hpp>

#include "backend/database.hpp"
#include "base/url.hpp"

namespace soci {
class backend_factory;
class session;
class soci_error;
namespace details {
class statement_backend;
}
}  // namespace soci

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

class SociDatabase {
 public:
  virtual ~SociDatabase() = default;
  SociDatabase(const SociDatabase&) = delete;
  SociDatabase& operator=(const SociDatabase&) = delete;

  /// Returns the connection string for SOCI. It contains the time-outs of the options. It may contain a password that
  /// the client library has read from its own files.
  virtual std::string connection_string(const detail::Url&, const PoolOptions&) const = 0;

  /// Returns SOCI's factory, which opens connections to this database.
  virtual const soci::backend_factory& factory() const noexcept = 0;

  /// Opens a session with `factory`, which must outlive it. The connection string comes from `connection_string`, or
  /// the user gave it after `soci:`. `parameters` are the parameters of the URL. No error repeats the value of a
  /// parameter, because a user may have written a password into the wrong parameter.
  virtual std::unique_ptr<soci::session> open(const soci::backend_factory& factory,
                                              const std::string& connection_string,
                                              const detail::UrlParameters& parameters) const;

  /// Explains why a session cannot be opened and how to fix it, if waiting does not help. Examples: the server refuses
  /// this user, password or database, or the file cannot be used. Returns none for any other error.
  virtual std::optional<std::string> refusal(const std::string& code, const std::string& connection_string) const = 0;

  /// Returns the client library's connection of a session. Null if it is closed.
  virtual void* handle_of(soci::session&) const noexcept = 0;

  /// Returns the code of an error of this database. Returns none for an error of another database.
  virtual std::optional<std::string> code_of(const soci::soci_error&) const = 0;

  /// Refuses a prepared statement that would lose a part of a handler's SQL without an error: `text` has a second
  /// statement, or not exactly `parameters` placeholders. It does nothing where the client library or the server
  /// refuses both.
  ///
  /// Errors: as `raise`.
  virtual void check_prepared(soci::session&, soci::details::statement_backend&, const std::string& /*text*/,
                              std::size_t /*parameters*/) const {}

  /// Throws SOCI's exception for this database. The exception is also a `DatabaseError`.
  [[noreturn]] virtual void raise(void* handle, const std::string& code, const std::string& text) const = 0;

 protected:
  SociDatabase() = default;
};

/// SOCI's exception `Error` for a database, which is also a `DatabaseError`.
template <class Error>
class SociDatabaseError final : public Error, public DatabaseError {
 public:
  template <class... Arguments>
  SociDatabaseError(std::string_view database, std::string code, Arguments&&... of_soci)
      : Error(std::forward<Arguments>(of_soci)...), DatabaseError(database, std::move(code)) {}

  const char* what() const noexcept override { return Error::what(); }
};

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
