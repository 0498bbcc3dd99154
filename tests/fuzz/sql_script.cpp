// Any text as SQL. If its statements are written one after the other, they must be parsed as the same statements. The
// pieces and the placeholders must give the statement's text. SQLite must read each statement as one statement.
//
// Input: the dialect's name, then the SQL.

#include "cli/sql/sql_script.hpp"

#include "console/usage_error.hpp"
#include "dialects.hpp"
#include "fuzz.hpp"
#include "sqlite_parser.hpp"

using namespace txinbox::fuzz;
using namespace txinbox::cli;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Fields fields(data, size);
  const auto dialect = dialect_named(fields.line());
  if (!dialect) return 0;
  const auto parse = [&](std::string_view sql) {
    return unless_refused<UsageError>([&] { return parse_script(sql, dialect->sql, dialect->syntax); });
  };
  const auto script = parse(fields.rest());
  if (!script) return 0;

  std::string joined;
  for (const auto& statement : script->statements) joined += statement.text + ";\n";
  const auto again = parse(joined);
  claim(again.has_value() && again->statements.size() == script->statements.size(),
        "the joined statements are split again into the same number");
  for (std::size_t i = 0; i < script->statements.size(); ++i) {
    claim(script->statements[i].text == again->statements[i].text, "a statement has the same text again");
    claim(script->statements[i].names == again->statements[i].names, "a statement has the same placeholders again");
  }

  for (const auto& statement : script->statements) {
    const auto& sql = statement.sql;
    claim(sql.pieces.size() == sql.values.size() + 1, "there is a value between every two pieces");
    const auto name = [&](std::size_t i) { return ":" + script->names.at(sql.values[i]); };
    claim(txinbox::cli::joined(sql, name) == statement.text, "the pieces and names give the statement");
    if (dialect->database == "sqlite3") claim_is_one_to_sqlite(statement);
  }
  return 0;
}
