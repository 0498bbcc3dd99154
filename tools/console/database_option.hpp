#pragma once

#include <string>
#include <string_view>

#include <txinbox/version.hpp>

#include "console/command.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
class Database;
}
TXINBOX_NAMESPACE_END
}  // namespace txinbox

namespace txinbox::cli {

/// Whether the text holds a password: in a URL's user part or query, or in a connection string of
/// SOCI's. In doubt it says so.
bool holds_password(std::string_view url);

/// Whether a word of the command line is a database URL with a password, also where no URL belongs.
bool is_url_with_password(std::string_view argument);

/// `--db URL`, or the environment variable TXINBOX_DB.
class DatabaseOption {
 public:
  void add_to(Command command);

  /// Errors: `UsageError` when there is none, or one in `--db` with a password.
  std::string url() const;

  /// Told by the URL's scheme, without connecting.
  ///
  /// Errors: as `url`, and as `backend::database_of_url`.
  const backend::Database& database() const;

 private:
  std::string option_;
};

}  // namespace txinbox::cli
