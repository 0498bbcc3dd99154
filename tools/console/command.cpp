#include "console/command.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace txinbox::cli {

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::type(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Option& Option::shown_as(const std::string& text) {
  option_->option_text(text);
  return *this;
}

Option& Option::with_default() {
  option_->capture_default_str();
  return *this;
}

Option& Option::once_each() {
  option_->allow_extra_args(false);
  return *this;
}

Option& Option::range(long long least, long long most) {
  option_->check(CLI::Range(least, most, fmt::format("from {} to {}", least, most)));
  return *this;
}

Option& Option::positive() {
  option_->check(CLI::PositiveNumber);
  return *this;
}

Option& Option::one_of(const std::vector<std::string>& words) {
  option_->check(CLI::IsMember(words));
  return *this;
}

Option& Option::checked(const std::function<std::string(const std::string&)>& check) {
  option_->check(CLI::Validator([check](std::string& text) { return check(text); }, ""));
  return *this;
}

Option& Option::excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}

Option& Option::needs(const Option& other) {
  option_->needs(other.option_);
  return *this;
}

Command Command::subcommand(const std::string& name, const std::string& help) {
  return Command(*app_->add_subcommand(name, help));
}

Command Command::group(const std::string& name, const std::string& help) {
  return Command(*app_->add_option_group(name, help));
}

Option Command::option(const std::string& name, std::string& value, const std::string& help) {
  return Option(app_->add_option(name, value, help));
}

Option Command::option(const std::string& name, std::vector<std::string>& values, const std::string& help) {
  return Option(app_->add_option(name, values, help));
}

Option Command::option(const std::string& name, std::size_t& value, const std::string& help) {
  return Option(app_->add_option(name, value, help));
}

Option Command::option(const std::string& name, int& value, const std::string& help) {
  return Option(app_->add_option(name, value, help));
}

Option Command::flag(const std::string& name, bool& value, const std::string& help) {
  return Option(app_->add_flag(name, value, help));
}

void Command::requires_option() { app_->require_option(1); }

void Command::requires_subcommand() { app_->require_subcommand(1); }

void Command::version(const std::string& text) {
  app_->set_version_flag("--version", text, "Print the version and exit");
}

void Command::add_help(std::initializer_list<std::string_view> examples,
                       std::initializer_list<std::pair<ExitStatus, std::string_view>> statuses) {
  std::string text = "Examples:\n";
  for (const auto& example : examples) text += fmt::format("  {}\n", example);
  text += "\nExit status:";
  for (const auto& [status, meaning] : statuses) text += fmt::format("\n  {}  {}", static_cast<int>(status), meaning);
  app_->footer(text);
}

void Command::on_chosen(Run& run, Run what) {
  app_->callback([&run, what = std::move(what)] { run = what; });
}

}  // namespace txinbox::cli
