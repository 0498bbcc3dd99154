#include "cli/reference.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <txinbox/version.hpp>

#include "cli/help_text.hpp"

namespace txinbox::cli {
namespace {

/// The command or a subcommand.
struct Place {
  std::string path;  ///< Such as "failed list". Empty for the command itself.
  const CommandDescription* command;
};

void add_places(std::vector<Place>& places, const CommandDescription& command, const std::string& path) {
  places.push_back({path, &command});
  for (const CommandDescription& each : command.subcommands) {
    add_places(places, each, path.empty() ? each.name : path + ' ' + each.name);
  }
}

std::vector<Place> places_of(const CommandDescription& command) {
  std::vector<Place> places;
  add_places(places, command, "");
  return places;
}

bool is_positional(const OptionDescription& option) { return option.long_names.empty() && option.short_names.empty(); }

/// The type without its values: "STATE" of "STATE:{failing,parked}".
std::string value_name(const OptionDescription& option) {
  const std::string type = option.type;
  return type.substr(0, type.find(':'));
}

/// The values of "{failing,parked}".
std::string choices_of(const OptionDescription& option) {
  const std::string type = option.type;
  const auto begin = type.find('{');
  if (begin == std::string::npos || !type.ends_with('}')) return {};
  std::string words = type.substr(begin + 1, type.size() - begin - 2);
  for (char& c : words) c = c == ',' ? ' ' : c;
  return words;
}

bool takes_file(const OptionDescription& option) {
  return is_positional(option) ? option.text == "[FILE]" : value_name(option) == "FILE";
}

/// All names of an option: "--help -h".
std::string names_of(const OptionDescription& option) {
  std::string names;
  for (const auto& name : option.long_names) names += (names.empty() ? "--" : " --") + name;
  for (const auto& name : option.short_names) names += (names.empty() ? "-" : " -") + name;
  return names;
}

// --- man

std::string roff(std::string_view text) {
  std::string result;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
    line_begins = c == '\n';
  }
  return result;
}

std::string joined(std::string names) {
  for (auto at = names.find(' '); at != std::string::npos; at = names.find(' ', at + 2)) names.replace(at, 1, ", ");
  return names;
}

std::string roff_of(const OptionDescription& option) {
  if (is_positional(option)) {
    return fmt::format(".TP\n\\fI{}\\fR\n{}\n", roff(option.text), roff(option.description));
  }
  std::string text = fmt::format(".TP\n\\fB{}\\fR", roff(joined(names_of(option))));
  if (option.takes_value) text += fmt::format(" \\fI{}\\fR", roff(value_name(option)));
  text += '\n' + roff(option.description);
  if (const auto choices = choices_of(option); !choices.empty()) text += fmt::format(" ({})", roff(choices));
  if (!option.default_value.empty()) text += fmt::format(" (default: {})", roff(option.default_value));
  return text + '\n';
}

std::string roff_of(const Place& place) {
  std::string text = fmt::format(".SS \"txinbox {}\"\n{}.\n", roff(place.path), roff(place.command->description));
  for (const OptionDescription& each : place.command->options) text += roff_of(each);
  if (!place.command->footer.empty()) text += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(place.command->footer));
  return text;
}

// --- shells

/// The subcommands that can follow this command.
std::string subcommand_words(const CommandDescription& command) {
  std::string words;
  for (const CommandDescription& each : command.subcommands) words += (words.empty() ? "" : " ") + each.name;
  return words;
}

/// The names of an option as a shell pattern: "--help | -h".
std::string alternatives(std::string names) {
  for (auto at = names.find(' '); at != std::string::npos; at = names.find(' ', at + 3)) names.replace(at, 1, " | ");
  return names;
}

std::string bash_case(const Place& place) {
  std::string names;
  std::string values;
  bool files = false;
  for (const OptionDescription& each : place.command->options) {
    if (is_positional(each)) {
      files = files || takes_file(each);
      continue;
    }
    names += (names.empty() ? "" : " ") + names_of(each);
    if (!each.takes_value) continue;
    const auto choices = choices_of(each);
    const std::string reply = takes_file(each)  ? "compgen -f -- \"$cur\""
                              : choices.empty() ? ":"
                                                : fmt::format("compgen -W '{}' -- \"$cur\"", choices);
    values += fmt::format("        {}) mapfile -t COMPREPLY < <({}); return ;;\n", alternatives(names_of(each)), reply);
  }
  std::string text = fmt::format("    '{}')\n", place.path);
  if (!values.empty()) text += "      case $prev in\n" + values + "      esac\n";
  text += fmt::format("      options='{}' words='{}' files={}\n      ;;\n", names, subcommand_words(*place.command),
                      files ? "1" : "");
  return text;
}

std::string single_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("\\'") : std::string(1, c);
  return result + "'";
}

/// A condition for fish: the command line has the words of this command, and none of its subcommands.
std::string fish_condition(const Place& place) {
  if (place.path.empty()) return "__fish_use_subcommand";
  std::string condition;
  for (std::size_t at = 0; at < place.path.size();) {
    const auto end = std::min(place.path.find(' ', at), place.path.size());
    condition +=
        (condition.empty() ? "" : "; and ") + ("__fish_seen_subcommand_from " + place.path.substr(at, end - at));
    at = end + 1;
  }
  const auto below = subcommand_words(*place.command);
  return below.empty() ? condition : condition + "; and not __fish_seen_subcommand_from " + below;
}

}  // namespace

std::string man_page(const CommandDescription& command) {
  std::string text = fmt::format(
      ".\\\" Made from the command's own help.\n.TH TXINBOX 1 \"\" \"txinbox {}\" \"User Commands\"\n.SH NAME\n"
      "txinbox \\- applies each message to a database exactly once\n.SH SYNOPSIS\n"
      "\\fBtxinbox\\fR \\fISUBCOMMAND\\fR [\\fIOPTION\\fR]...\n.SH DESCRIPTION\n"
      "Results go to standard output, messages and progress to standard error.\n.SH OPTIONS\n",
      roff(version()));
  for (const OptionDescription& each : command.options) text += roff_of(each);
  text += ".SH SUBCOMMANDS\n";
  for (const Place& place : places_of(command)) {
    if (!place.path.empty()) text += roff_of(place);
  }
  text += ".SH ENVIRONMENT\n";
  for (const auto& [name, meaning] : variables)
    text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", name, roff(std::string(meaning)));
  return text +
         ".SH FILES\n.TP\n\\fI~/.my.cnf\\fR, \\fI~/.pgpass\\fR\nPasswords, as the databases' own clients read them.\n";
}

std::string bash_completion(const CommandDescription& command) {
  std::string paths;
  std::string cases;
  for (const Place& place : places_of(command)) {
    if (!place.path.empty()) paths += fmt::format("{}'{}'", paths.empty() ? "" : " | ", place.path);
    cases += bash_case(place);
  }
  return "# Completion of txinbox for bash, made from the command's own help.\n"
         "_txinbox() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  local place= options= words= files= i\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    case \"${place:+$place }${COMP_WORDS[i]}\" in\n"
         "      " +
         paths +
         ") place=${place:+$place }${COMP_WORDS[i]} ;;\n"
         "    esac\n"
         "  done\n"
         "  COMPREPLY=()\n"
         "  case $place in\n" +
         cases +
         "  esac\n"
         "  if [[ $cur == -* ]]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
         "  elif [[ $files ]]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
         "  else\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
         "  fi\n"
         "}\n"
         "complete -o filenames -F _txinbox txinbox\n";
}

std::string fish_completion(const CommandDescription& command) {
  std::string text = "# Completion of txinbox for fish, made from the command's own help.\ncomplete -c txinbox -f\n";
  for (const Place& place : places_of(command)) {
    const std::string start = "complete -c txinbox -n " + single_quoted(fish_condition(place));
    for (const CommandDescription& each : place.command->subcommands) {
      text += fmt::format("{} -a {} -d {}\n", start, each.name, single_quoted(each.description));
    }
    for (const OptionDescription& each : place.command->options) {
      if (is_positional(each)) {
        if (takes_file(each)) text += start + " -F\n";
        continue;
      }
      text += start;
      for (const auto& name : each.long_names) text += " -l " + name;
      for (const auto& name : each.short_names) text += " -s " + name;
      text += " -d " + single_quoted(each.description);
      if (const auto choices = choices_of(each); !choices.empty())
        text += fmt::format(" -x -a '{}'", choices);
      else if (each.takes_value)
        text += takes_file(each) ? " -r -F" : " -x";
      text += '\n';
    }
  }
  return text;
}

}  // namespace txinbox::cli
