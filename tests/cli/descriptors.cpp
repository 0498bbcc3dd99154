// Standard descriptors that are closed when the command starts.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/orders.hpp"

using namespace txinbox::test;

namespace {

/// The status of the command with these words of a shell, and what it wrote to the descriptors that it has. A command
/// that hangs has the status 124.
Ended run_in_shell(const Orders& orders, const std::string& words) {
  const auto file = [](const char* name) {
    return (std::filesystem::temp_directory_path() / (name + std::to_string(::getpid()))).string();
  };
  const auto take = [](const std::string& path) {
    std::ifstream in(path);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    std::filesystem::remove(path);
    return text;
  };
  const std::string out = file("txinbox-out-");
  const std::string err = file("txinbox-err-");
  ::setenv("TXINBOX_DB", orders.db.url().c_str(), 1);
  const std::string line = "exec >" + out + " 2>" + err + "; timeout -s KILL 60 \"$TXINBOX_COMMAND\" " + words;
  const int status = std::system(line.c_str());
  ::unsetenv("TXINBOX_DB");
  return {.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1, .out = take(out), .err = take(err)};
}

}  // namespace

TEST_CASE("closed standard descriptors are errors, or are not used") {
  const Orders orders;
  const std::string consume = "consume --consumer c --key /no --sql 'select 1' ";
  const Ended no_input = run_in_shell(orders, consume + "<&-");
  CHECK(no_input.status == 1);
  CHECK(no_input.err.starts_with("line 1: reading failed: "));
  CHECK(no_input.out.starts_with("consumed 0, "));
  const Ended no_output = run_in_shell(orders, consume + "</dev/null >&-");
  CHECK(no_output.status == 4);
  CHECK(no_output.err.starts_with("txinbox: standard output: "));
  const Ended no_errors = run_in_shell(orders, consume + "</dev/null 2>&-");
  CHECK(no_errors.status == 0);
  CHECK(no_errors.out.starts_with("consumed 0, "));
  CHECK(run_in_shell(orders, consume + "<&- >&- 2>&-").status == 4);
}
