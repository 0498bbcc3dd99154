#include <string>

#include <doctest/doctest.h>

#include "backend/registry.hpp"
#include "cli/sql/statement_size.hpp"

using namespace txinbox::cli;
using namespace std::string_view_literals;

namespace {

Script parsed(const std::string& sql) {
  return parse_script(sql, user_sql_of(txinbox::backend::database_named("mysql")));
}

}  // namespace

TEST_CASE("a statement's size counts each use of a value with its quotes and escapes") {
  SqlLimits limits{.doubled = "\0\n\r\\'\"\x1a"sv};
  const Script script = parsed("select :a, :b, :a");
  const std::size_t text = std::string("select , , ").size();
  const Values values{std::string("x'\\\n\"y"), std::string("é")};
  CHECK(size_with_values(script.statements[0], values, limits) == text + 2 * (6 + 4 + 2) + (2 + 2));
  limits.doubled = "'";
  CHECK(size_with_values(script.statements[0], values, limits) == text + 2 * (6 + 1 + 2) + (2 + 2));
}

TEST_CASE("a statement that is too long for the server is refused by its number") {
  const Script script = parsed("select 1; select :a");
  auto refusal = [&](std::size_t size, std::size_t longest) {
    try {
      check_size(script, {std::string(size, 'x')},
                 {.statement_bytes = longest, .statement_setting = "max_allowed_packet", .doubled = "'"});
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
