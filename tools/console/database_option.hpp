#pragma once

#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace txinbox::cli {

/// The kinds of database, which differ in how SQL is read and values are bound.
enum class Database { sqlite3, mysql, postgresql };

/// As SOCI and `txinbox::migrations` call it.
std::string database_name(Database database);

/// Whether the text holds a password: in a URL's user part or query, or in a connection string of
/// SOCI's. In doubt it says so.
bool holds_password(std::string_view url);

/// Whether a word of the command line is a database URL with a password, also where no URL belongs.
bool is_url_with_password(std::string_view argument);

/// `--db URL`, or the environment variable TXINBOX_DB.
class DatabaseOption {
 public:
  void add_to(CLI::App& command);

  /// Errors: `UsageError` when there is none, or one in `--db` with a password.
  std::string url() const;

  /// Told by the URL's scheme, without connecting.
  ///
  /// Errors: as `url`, and `UsageError` for a scheme that is not known.
  Database database() const;

 private:
  std::string option_;
};

}  // namespace txinbox::cli
