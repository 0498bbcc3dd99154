#include "console/command.hpp"

#include <algorithm>
#include <cctype>
#include <iostream>
#include <sstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/text.hpp"
#include "console/output.hpp"
#include "console/terminal.hpp"
#include "console/wrap.hpp"

namespace txinbox::cli {
namespace {

bool is_subcommand(const CLI::App& app, const std::string& name) {
  const auto all = app.get_subcommands([](const CLI::App*) { return true; });
  return std::any_of(all.begin(), all.end(), [&](const CLI::App* each) { return each->check_name(name); });
}

OptionDescription describe(const CLI::Option& option) {
  return {.long_names = option.get_lnames(),
          .short_names = option.get_snames(),
          .description = option.get_description(),
          .type = option.get_type_name(),
          .text = option.get_option_text(),
          .default_value = option.get_default_str(),
          .takes_value = option.get_items_expected_max() > 0};
}

CommandDescription describe(const CLI::App& app) {
  CommandDescription description{.name = app.get_name(),
                                 .description = app.get_description(),
                                 .footer = app.get_footer(),
                                 .options = {},
                                 .subcommands = {}};
  for (const CLI::Option* each : app.get_options([](const CLI::Option*) { return true; })) {
    description.options.push_back(describe(*each));
  }
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
    CommandDescription part = describe(*each);
    if (!part.name.empty()) {
      description.subcommands.push_back(std::move(part));
      continue;
    }
    for (auto& option : part.options) description.options.push_back(std::move(option));  // a group has no name
  }
  return description;
}

/// An empty value is mostly a variable of a shell that is not set. An empty filter would choose all rows.
std::string not_empty(const std::string& value) {
  return value.empty() ? "the value is empty; give a value, or leave the option out" : "";
}

/// How many characters must be inserted, removed or replaced to make `b` of `a`.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row[b.size()];
}

/// Suggests an option for the first unknown one: "; did you mean --batch?". Empty if nothing is near.
std::string suggestion(const CLI::App& app, int argc, const char* const* argv) {
  const CLI::App* chosen = &app;
  while (!chosen->get_subcommands().empty()) chosen = chosen->get_subcommands().front();
  std::vector<std::string> known;
  for (const OptionDescription& each : describe(*chosen).options) {
    known.insert(known.end(), each.long_names.begin(), each.long_names.end());
  }
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    if (word == "--") break;
    if (!word.starts_with("--")) continue;
    word = word.substr(2, word.find('=') - 2);
    if (known.empty() || std::ranges::find(known, word) != known.end()) continue;
    const auto nearest =
        std::ranges::min_element(known, {}, [&](const std::string& each) { return distance(word, each); });
    return distance(word, *nearest) <= 2 && word.size() > 3 ? "; did you mean --" + *nearest + "?" : "";
  }
  return {};
}

/// Whether the word is like `--name` or `--name=value`. SQL can begin with a comment, `-- like this`.
bool looks_like_option(std::string_view word) {
  if (!word.starts_with("--")) return false;
  const std::string_view name = word.substr(2, word.find('=') - 2);
  return !name.empty() && std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '-'; });
}

/// Returns what is wrong if an option has no value. CLI11 would take the next word, even if that is another option:
/// with
/// `--reason="$REASON" --consumer=orders` and an empty variable, all consumers would be chosen.
std::string missing_value(const CLI::App& app, int argc, const char* const* argv) {
  const CLI::App* chosen = &app;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--") break;
    if (!word.starts_with("--")) {
      if (is_subcommand(*chosen, argv[i])) chosen = chosen->get_subcommand(std::string(word));
      continue;
    }
    const std::string name(word.substr(0, word.find('=')));
    const CLI::Option* option = chosen->get_option_no_throw(name);
    if (option == nullptr || option->get_items_expected_max() == 0) continue;
    if (word.ends_with('=') && word.size() == name.size() + 1) {
      return fmt::format("{}: the value is empty; give a value, or leave the option out", name);
    }
    if (word.size() > name.size()) continue;
    const std::string_view next = i + 1 < argc ? argv[i + 1] : "";
    if (looks_like_option(next)) {
      return fmt::format("{} has no value, because {} is an option; if it is the value, write {}={}", name, next, name,
                         next);
    }
    ++i;  // the value can look like an option of one letter
  }
  return {};
}

}  // namespace

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
  option_->check(CLI::Validator(
      [](const std::string& text) -> std::string {
        const bool is_number = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
        return is_number && text.find_first_not_of('0') != std::string::npos ? "" : "write a number of at least 1";
      },
      ""));
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
  return Option(app_->add_option(name, value, help)).checked(not_empty);
}

Option Command::option(const std::string& name, std::vector<std::string>& values, const std::string& help) {
  return Option(app_->add_option(name, values, help)).checked(not_empty);
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

void Command::footer(const std::string& text) { app_->footer(text); }

void Command::on_chosen(Run& run, Run what) {
  app_->callback([&run, what = std::move(what)] { run = what; });
}

CommandLine::CommandLine(const std::string& name, const std::string& help)
    : app_(std::make_unique<CLI::App>(help, name)) {}

CommandLine::~CommandLine() = default;

std::optional<int> CommandLine::parse(int argc, const char* const* argv) {
  const std::string name = app_->get_name();
  if (argc > 1 && argv[1][0] != '-' && !is_subcommand(*app_, argv[1])) {
    message(fmt::format("{}: there is no subcommand '{}'\nRun with --help for the list.", name, argv[1]));
    return exit_usage;
  }
  if (const std::string wrong = missing_value(*app_, argc, argv); !wrong.empty()) {
    message(fmt::format("{}: {}\nRun with --help for more information.", name, detail::one_line(wrong)));
    return exit_usage;
  }
  try {
    app_->parse(argc, argv);
  } catch (const CLI::Success& success) {
    std::ostringstream help;
    const int status = app_->exit(success, help, std::cerr);
    std::cout << wrapped_help(help.str(), terminal_size().columns);
    return status;
  } catch (const CLI::ExtrasError& error) {
    message(fmt::format("{}: {}{}\nRun with --help for more information.", name, detail::one_line(error.what()),
                        suggestion(*app_, argc, argv)));
    return exit_usage;
  } catch (const CLI::ParseError& error) {
    message(fmt::format("{}: {}\nRun with --help for more information.", name, detail::one_line(error.what())));
    return exit_usage;
  }
  return std::nullopt;
}

CommandDescription CommandLine::description() const { return describe(*app_); }

}  // namespace txinbox::cli
