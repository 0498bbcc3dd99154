// Writes the man page and the shells' completions. For the build: the files are installed with the command.

#include <iostream>
#include <string_view>

#include <CLI/CLI.hpp>

#include "cli/command_line.hpp"
#include "cli/reference.hpp"

int main(int argc, char** argv) {
  using namespace txinbox::cli;
  CLI::App app{"Takes each message's effect into a database exactly once", "txinbox"};
  Run run;
  add_all(Command(app), run);
  const std::string_view kind = argc == 2 ? argv[1] : "";
  if (kind == "man") {
    std::cout << man_page(app);
  } else if (kind == "bash") {
    std::cout << bash_completion(app);
  } else if (kind == "fish") {
    std::cout << fish_completion(app);
  } else {
    std::cerr << "usage: txinbox-reference man|bash|fish\n";
    return 2;
  }
  return std::cout.flush() ? 0 : 1;
}
