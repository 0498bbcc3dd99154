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

/// Whether the text contains a password: in the user part or the query of a URL, or in a connection string of SOCI. If
/// it is not sure, it returns true.
bool holds_password(std::string_view url);

/// Returns the value in a word of the command line: VALUE of --name=VALUE, the whole word if it is no option, and else
/// an empty text.
std::string_view value_of_argument(std::string_view argument);

/// Whether a word of the command line is a database URL with a password. It need not be the value of --db.
bool is_url_with_password(std::string_view argument);

/// `--db URL`, or the environment variable TXINBOX_DB.
class DatabaseOption {
 public:
  void add_to(Command command);

  /// Errors: `UsageError` if there is no URL, or if the one in `--db` contains a password.
  std::string url() const;

  /// The scheme of the URL decides. This does not connect.
  ///
  /// Errors: as `url`, and as `backend::database_of_url`.
  const backend::Database& database() const;

 private:
  std::string option_;
};

}  // namespace txinbox::cli
