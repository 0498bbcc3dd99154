#pragma once

#include <cstdlib>
#include <string>

#include <soci/soci.h>
#include <txinbox/error.hpp>
#include <txinbox/pool.hpp>

#include "backend/registry.hpp"
#include "soci_adapter/soci_connection.hpp"
#include "support/environment.hpp"

namespace txinbox::test {

inline std::string with_certificate() { return variable("TXINBOX_TEST_URL"); }
inline std::string with_other_hosts_certificate() { return variable("TXINBOX_TEST_OTHER_HOST_URL"); }
inline std::string without_tls() { return variable("TXINBOX_TEST_UNENCRYPTED_URL"); }

/// The path of a file in the folder of the certificates.
inline std::string file(const std::string& name) { return variable("TXINBOX_TEST_CERTIFICATES") + "/" + name; }

inline std::string encryption(soci::session& sql) {
  return backend::database_of(sql).catalog(backend::connection_of(sql))->transport().encryption;
}

/// Opens a pool with this URL. Returns "encrypted", "unencrypted", "refused" if the client library or the server
/// refused the connection, or the name of an `ErrorCode`.
inline std::string connect(const std::string& url) {
  try {
    Pool pool = open_pool(url, {.connections = 1});
    return encryption(pool.acquire()).empty() ? "unencrypted" : "encrypted";
  } catch (const Error& e) {
    return std::string(to_string(e.code()));
  } catch (const soci::soci_error&) {
    return "refused";
  }
}

/// The error text of an attempt to connect to this URL.
inline std::string error_of(const std::string& url) {
  try {
    (void)open_pool(url, {.connections = 1});
    return "";
  } catch (const std::exception& e) {
    return e.what();
  }
}

/// Sets an environment variable while this object exists.
class Variable {
 public:
  Variable(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* before = std::getenv(name_.c_str())) before_ = before;
    setenv(name_.c_str(), value.c_str(), 1);
  }
  ~Variable() {
    if (before_.empty()) {
      unsetenv(name_.c_str());
    } else {
      setenv(name_.c_str(), before_.c_str(), 1);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  std::string name_, before_;
};

}  // namespace txinbox::test
