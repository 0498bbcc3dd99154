// Writes the man page and the shells' completions. The build runs it, and these files are installed with the command.

#include <iostream>
#include <string_view>

#include "cli/command_line.hpp"
#include "cli/reference.hpp"

int main(int argc, char** argv) {
  using namespace txinbox::cli;
  const CommandLine command_line(program_name, program_help);
  Run run;
  add_all(command_line.command(), run);
  const CommandDescription command = command_line.description();
  const std::string_view kind = argc == 2 ? argv[1] : "";
  if (kind == "man") {
    std::cout << man_page(command);
  } else if (kind == "bash") {
    std::cout << bash_completion(command);
  } else if (kind == "fish") {
    std::cout << fish_completion(command);
  } else {
    std::cerr << "usage: txinbox-reference man|bash|fish\n";
    return 2;
  }
  return std::cout.flush() ? 0 : 1;
}
