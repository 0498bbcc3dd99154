#include "sqlite_parser.hpp"

#include <memory>
#include <string_view>

#include <sqlite3.h>

#include "fuzz.hpp"

namespace txinbox::fuzz {
namespace {

sqlite3* database() {
  static sqlite3* const opened = [] {
    sqlite3* made = nullptr;
    claim(sqlite3_open(":memory:", &made) == SQLITE_OK, "SQLite opens");
    claim(sqlite3_exec(made, "create table t (a, b, c)", nullptr, nullptr, nullptr) == SQLITE_OK, "SQLite runs");
    return made;
  }();
  return opened;
}

// Checks only a text that SQLite accepts as a statement, because only then SQLite reports where the statement ends.
void claim_is_prepared_whole(const cli::Statement& statement) {
  sqlite3_stmt* made = nullptr;
  const char* rest = nullptr;
  const int result = sqlite3_prepare_v2(database(), statement.text.c_str(), -1, &made, &rest);
  const std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> prepared(made, &sqlite3_finalize);
  if (result != SQLITE_OK) return;
  claim(std::string_view(rest).find_first_not_of(' ') == std::string_view::npos,
        "SQLite reads the statement to its end");
  claim(static_cast<std::size_t>(sqlite3_bind_parameter_count(made)) == statement.names.size(),
        "SQLite finds the same number of placeholders");
  for (std::size_t i = 0; i < statement.names.size(); ++i) {
    const char* name = sqlite3_bind_parameter_name(made, static_cast<int>(i) + 1);
    claim(name != nullptr && name == ":" + statement.names[i], "SQLite finds the same placeholders");
  }
}

}  // namespace

void claim_is_one_to_sqlite(const cli::Statement& statement) {
  claim_is_prepared_whole(statement);
  // The body of a trigger contains semicolons, which the command does not support.
  std::string text = statement.text;
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (text.find("create") != std::string::npos) return;
  claim(sqlite3_complete((text + ";").c_str()) != 0, "a semicolon ends the statement");
  for (auto at = text.find(';'); at != std::string::npos; at = text.find(';', at + 1)) {
    claim(sqlite3_complete(text.substr(0, at + 1).c_str()) == 0, "no semicolon inside the statement ends it");
  }
}

}  // namespace txinbox::fuzz
