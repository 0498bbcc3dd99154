// The help, the man page and the completions.

#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/command.hpp"
#include "support/environment.hpp"

using namespace txinbox::test;

namespace {

const std::vector<Command::Arguments> places{{"migrate"},
                                             {"doctor"},
                                             {"serve"},
                                             {"consume"},
                                             {"status"},
                                             {"leases"},
                                             {"conflicts"},
                                             {"redrive"},
                                             {"audit"},
                                             {"show"},
                                             {"forget"},
                                             {"erase"},
                                             {"pause"},
                                             {"resume"},
                                             {"purge"},
                                             {"failed", "list"},
                                             {"failed", "retry"},
                                             {"failed", "discard"},
                                             {"outbox", "status"},
                                             {"outbox", "list"},
                                             {"outbox", "retry"},
                                             {"outbox", "discard"},
                                             {"relay"}};

std::string help_of(Command::Arguments words) {
  words.emplace_back("--help");
  const Ended ended = run(words);
  CHECK(ended.status == 0);
  return ended.out;
}

std::set<std::string> options_in(const std::string& help) {
  std::set<std::string> options;
  const std::regex option("(?:^|\n) +(?:-\\w,)?(--[a-z-]+)");
  for (auto at = std::sregex_iterator(help.begin(), help.end(), option); at != std::sregex_iterator(); ++at) {
    options.insert((*at)[1]);
  }
  return options;
}

}  // namespace

TEST_CASE("each subcommand's help has examples and the meanings of its exit statuses") {
  const std::string help = help_of({}).substr(help_of({}).find("Subcommands:"));
  const std::regex name("\n  ([a-z]+) ");
  std::set<std::string> named;
  for (auto at = std::sregex_iterator(help.begin(), help.end(), name); at != std::sregex_iterator(); ++at) {
    named.insert((*at)[1]);
  }
  std::set<std::string> known;
  for (const auto& words : places) known.insert(words[0]);
  CHECK(named == known);
  for (const auto& words : places) {
    const std::string text = help_of(words);
    CAPTURE(text);
    CHECK(text.find("\nExamples:\n  txinbox " + words[0]) != std::string::npos);
    CHECK(text.find("\nExit status:\n  0  ") != std::string::npos);
    CHECK(options_in(text).count("--db") == 1);
  }
}

TEST_CASE("the help and the man page name every environment variable") {
  const std::string help = help_of({});
  for (const char* name : {"TXINBOX_DB", "TXINBOX_FROM", "TXINBOX_KAFKA_PASSWORD", "TXINBOX_RABBITMQ_PASSWORD",
                           "TXINBOX_ROCKETMQ_SECRET", "TXINBOX_REDIS_PASSWORD", "TXINBOX_HTTP_AUTHORIZATION"}) {
    CAPTURE(name);
    CHECK(help.find(std::string("\n  ") + name + " ") != std::string::npos);
    if (has_variable("TXINBOX_REFERENCE")) {
      std::ifstream man(variable("TXINBOX_REFERENCE") + "/txinbox.1");
      const std::string text{std::istreambuf_iterator<char>(man), {}};
      CHECK(text.find(std::string("\\fB") + name + "\\fR") != std::string::npos);
    }
  }
}

namespace {

std::string file(const std::string& name) {
  std::ifstream in(variable("TXINBOX_REFERENCE") + "/" + name);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The words that bash offers to complete the last of these.
std::set<std::string> offered(const Command::Arguments& words) {
  std::string line = "source '" + variable("TXINBOX_REFERENCE") + "/txinbox'; COMP_WORDS=(txinbox";
  for (const auto& word : words) line += " '" + word + "'";
  line += "); COMP_CWORD=" + std::to_string(words.size()) + "; _txinbox; printf '%s\\n' \"${COMPREPLY[@]}\"";
  std::string quoted = line;
  for (auto at = quoted.find('"'); at != std::string::npos; at = quoted.find('"', at + 2))
    quoted.replace(at, 1, "\\\"");
  for (auto at = quoted.find('$'); at != std::string::npos; at = quoted.find('$', at + 2)) quoted.replace(at, 1, "\\$");
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(("bash -c \"" + quoted + "\"").c_str(), "r"), ::pclose);
  REQUIRE(pipe);
  std::set<std::string> words_offered;
  std::string word;
  for (int c = std::fgetc(pipe.get()); c != EOF; c = std::fgetc(pipe.get())) {
    if (c != '\n') {
      word += static_cast<char>(c);
      continue;
    }
    if (!word.empty()) words_offered.insert(word);
    word.clear();
  }
  return words_offered;
}

}  // namespace

TEST_CASE("the man page and the completions have every subcommand and option" *
          doctest::skip(!has_variable("TXINBOX_REFERENCE"))) {
  const std::string man = file("txinbox.1");
  const std::string fish = file("txinbox.fish");
  CHECK(man.starts_with(".\\\" "));
  for (const auto& words : places) {
    std::string path = words[0];
    for (std::size_t i = 1; i < words.size(); ++i) path += " " + words[i];
    const auto section = man.find(".SS \"txinbox " + path + "\"");
    REQUIRE(section != std::string::npos);
    const std::string part = man.substr(section, man.find("\n.S", section + 1) - section);
    CHECK(part.find("Exit status:") != std::string::npos);
    Command::Arguments typed = words;
    typed.emplace_back("--");
    auto all = offered(typed);
    all.insert("-h");
    for (const auto& option : options_in(help_of(words))) {
      CAPTURE(path);
      CAPTURE(option);
      std::string in_roff;
      for (const char c : option) in_roff += c == '-' ? "\\-" : std::string(1, c);
      CHECK(part.find("\\fB" + in_roff) != std::string::npos);
      CHECK(all.count(option) == 1);
      CHECK(fish.find("seen_subcommand_from " + words.back() + "' -l " + option.substr(2) + " ") != std::string::npos);
    }
  }
}

TEST_CASE("bash completes subcommands and the names of states" * doctest::skip(!has_variable("TXINBOX_REFERENCE"))) {
  CHECK(offered({"con"}) == std::set<std::string>{"conflicts", "consume"});
  CHECK(offered({""}).size() == 18);
  CHECK(offered({"failed", ""}) == std::set<std::string>{"list", "retry", "discard"});
  CHECK(offered({"failed", "list", "--state", "par"}) == std::set<std::string>{"parked"});
  CHECK(offered({"purge", "--dry"}) == std::set<std::string>{"--dry-run"});
  CHECK(offered({"purge", "--older-than", ""}).empty());
  CHECK(offered({"consume", "--sql-file", "/usr/bi"}).count("/usr/bin") == 1);
}
