#pragma once

// The options of a command, declared without CLI11's headers, because these take several seconds to compile in each
// file.

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "console/command_description.hpp"
#include "console/exit_status.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace txinbox::cli {

/// The work of the chosen subcommand; the result is the exit status.
using Run = std::function<int()>;

/// One option. Its functions configure it. They mean what CLI11's functions with the same purpose mean.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option& required();

  /// The name of its value in the help.
  Option& type(const std::string& name);

  /// How the help shows a positional argument.
  Option& shown_as(const std::string& text);

  /// The help shows the current value of the variable as the default.
  Option& with_default();

  /// The option takes one value each time, so that a positional argument may follow.
  Option& once_each();

  Option& range(long long least, long long most);
  Option& positive();
  Option& one_of(const std::vector<std::string>& words);

  /// `check` returns the reason why the text is invalid; empty if it is valid.
  Option& checked(const std::function<std::string(const std::string&)>& check);

  Option& excludes(const Option& other);
  Option& needs(const Option& other);

 private:
  CLI::Option* option_;
};

/// A command, a subcommand, or a group of options. The variables must outlive the parsing.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}

  Command subcommand(const std::string& name, const std::string& help);
  Command group(const std::string& name, const std::string& help);

  Option option(const std::string& name, std::string& value, const std::string& help);
  Option option(const std::string& name, std::vector<std::string>& values, const std::string& help);
  Option option(const std::string& name, std::size_t& value, const std::string& help);
  Option option(const std::string& name, int& value, const std::string& help);
  Option flag(const std::string& name, bool& value, const std::string& help);

  /// The user must give one of its options or subcommands.
  void requires_option();
  void requires_subcommand();

  void version(const std::string& text);

  /// Adds examples and the meanings of the exit statuses to the end of the help.
  void add_help(std::initializer_list<std::string_view> examples,
                std::initializer_list<std::pair<ExitStatus, std::string_view>> statuses);

  /// Sets the end of the help, instead of examples and exit statuses.
  void footer(const std::string& text);

  /// The chosen command sets `run` to this.
  void on_chosen(Run& run, Run what);

 private:
  CLI::App* app_;
};

/// The command of a program. It parses the arguments.
class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& help);
  ~CommandLine();

  Command command() const { return Command(*app_); }

  /// Returns the exit status if there is nothing to run: it has printed the help, or the error in the arguments.
  std::optional<int> parse(int argc, const char* const* argv);

  CommandDescription description() const;

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace txinbox::cli
