// Any text as SQL: its statements, written one behind the other, are read as the same statements; SOCI finds
// the placeholders that we do; and SQLite reads each of them as one statement.
//
// Input: the dialect's name, then the SQL.

#include "cli/sql/sql_script.hpp"

#include <algorithm>

#include "cli/sql/soci_placeholders.hpp"
#include "console/usage_error.hpp"
#include "dialects.hpp"
#include "fuzz.hpp"
#include "soci_parsers.hpp"
#include "sqlite_parser.hpp"

using namespace txinbox::fuzz;
using namespace txinbox::cli;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Fields fields(data, size);
  const auto dialect = dialect_named(fields.line());
  if (!dialect) return 0;
  const bool by_soci = dialect->database != Database::sqlite3;  // there SQLite itself finds the placeholders
  if (by_soci) claim_soci_reads_alike(std::string(fields.rest()), dialect->database);
  const auto script = unless_refused<UsageError>([&] { return parse_script(fields.rest(), *dialect); });
  if (!script) return 0;

  std::string joined;
  for (const auto& statement : script->statements) joined += statement.text + ";\n";
  const auto again = unless_refused<UsageError>([&] { return parse_script(joined, *dialect); });
  claim(again.has_value() && again->statements.size() == script->statements.size(), "a split text splits alike");
  for (std::size_t i = 0; i < script->statements.size(); ++i) {
    claim(script->statements[i].text == again->statements[i].text, "a statement is read as it was written");
    claim(script->statements[i].names == again->statements[i].names, "placeholders stay placeholders");
  }

  for (const auto& statement : script->statements) {
    if (!by_soci) {
      claim_is_one_to_sqlite(statement);
      continue;
    }
    std::vector<std::string> names;
    for (const auto& [offset, name] : soci_placeholders(statement.text, dialect->database)) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    claim(names == statement.names, "a value is bound to each of SOCI's placeholders");
  }
  return 0;
}
