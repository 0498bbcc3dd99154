#pragma once

// The options of a command, declared without CLI11's headers: to compile those takes several seconds for each file.

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

/// What the chosen subcommand does; the result is the exit status.
using Run = std::function<int()>;

/// One option. Its functions say more about it, each in CLI11's sense.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option& required();

  /// What its value is called in the help.
  Option& type(const std::string& name);

  /// How the help shows an argument that has no name.
  Option& shown_as(const std::string& text);

  /// The help shows the value that the variable has now.
  Option& with_default();

  /// It takes one value each time, so that an argument may follow.
  Option& once_each();

  Option& range(long long least, long long most);
  Option& positive();
  Option& one_of(const std::vector<std::string>& words);

  /// `check` returns why the text is wrong; empty: it is not.
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

  /// One of its options, or of its subcommands, must be given.
  void requires_option();
  void requires_subcommand();

  void version(const std::string& text);

  /// Ends the help with examples and with what the exit statuses mean.
  void add_help(std::initializer_list<std::string_view> examples,
                std::initializer_list<std::pair<ExitStatus, std::string_view>> statuses);

  /// Sets `run` when the command is chosen.
  void on_chosen(Run& run, Run what);

 private:
  CLI::App* app_;
};

/// A program's command and the reading of its arguments.
class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& help);
  ~CommandLine();

  Command command() const { return Command(*app_); }

  /// Returns the exit status where there is nothing to run: the help was printed, or what is wrong.
  std::optional<int> parse(int argc, const char* const* argv);

  CommandDescription description() const;

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace txinbox::cli
