#include "cli/help_text.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace txinbox::cli {

void add_help(CLI::App& command, std::initializer_list<std::string_view> examples,
              std::initializer_list<std::pair<ExitStatus, std::string_view>> statuses) {
  std::string text = "Examples:\n";
  for (const auto& example : examples) text += fmt::format("  {}\n", example);
  text += "\nExit status:";
  for (const auto& [status, meaning] : statuses) text += fmt::format("\n  {}  {}", static_cast<int>(status), meaning);
  command.footer(text);
}

}  // namespace txinbox::cli
