#include <string>

#include <doctest/doctest.h>

#include "cli/sql/statement_size.hpp"

using namespace txinbox::cli;

TEST_CASE("a statement's size counts each value with its quotes and escapes, as often as it stands there") {
  Dialect dialect = default_dialect(Database::mysql);
  const Script script = parse_script("select :a, :b, :a", dialect);
  const std::size_t text = std::string("select , , ").size();
  const Values values{std::string("x'\\\n\"y"), std::string("é")};
  CHECK(size_for_mysql(script.statements[0], values, dialect) == text + 2 * (6 + 4 + 2) + (2 + 2));
  dialect.backslash_escapes = false;
  CHECK(size_for_mysql(script.statements[0], values, dialect) == text + 2 * (6 + 1 + 2) + (2 + 2));
}

TEST_CASE("a statement that the server would not take is refused by its number") {
  const Dialect dialect = default_dialect(Database::mysql);
  const Script script = parse_script("select 1; select :a", dialect);
  auto refusal = [&](std::size_t size, std::size_t longest) {
    try {
      check_size(script, {std::string(size, 'x')}, dialect, longest);
    } catch (const LineError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::size_t rest = std::string("select ''").size() + 1024;
  CHECK(refusal(100'000 - rest, 100'000).empty());
  CHECK(refusal(100'000 - rest + 1, 100'000) ==
        "statement 2 would have 98977 bytes with the line's values; the server takes 100000 (max_allowed_packet)");
  CHECK(refusal(1'000'000, 0).empty());
}
