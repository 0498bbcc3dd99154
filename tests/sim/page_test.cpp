// The page of the simulator names what the simulator has.

#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "sim/plan.hpp"
#include "support/source_files.hpp"

namespace txinbox::test {
namespace {

TEST_CASE("docs/internals/simulation.md has a row for each kind of fault, and no other") {
  const std::string page = source_text("docs/internals/simulation.md");
  const auto begin = page.find("| Kind (`--without`) |");
  const auto end = page.find("\n\n", begin);
  REQUIRE(end != std::string::npos);
  const std::string table = page.substr(begin, end - begin);
  for (const std::string_view name : sim::fault_names()) {
    CHECK_MESSAGE(table.find("`" + std::string(name) + "`") != std::string::npos, "the page has no row for ", name);
  }
  std::size_t documented = 0;
  for (auto row = table.find("\n| `"); row != std::string::npos; row = table.find("\n| `", row + 1)) {
    const std::string kinds = table.substr(row, table.find(" | ", row + 3) - row);
    for (const char c : kinds) documented += c == '`' ? 1 : 0;
  }
  CHECK(documented == 2 * sim::fault_names().size());
}

}  // namespace
}  // namespace txinbox::test
