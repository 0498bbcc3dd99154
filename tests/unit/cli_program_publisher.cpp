// `relay --exec`: what a program answers, and what it does not.

#include "cli/relay/program_publisher.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace txinbox::test {
namespace {

using cli::ProgramPublisher;
using namespace std::chrono_literals;

/// A program that does this for each message. Its id is in $id.
std::string program(const std::string& answer) {
  return "while read -r line; do id=${line#*\\\"id\\\":\\\"}; id=${id%%\\\"*}; " + answer + "; done";
}

const std::string confirm = R"(echo "{\"id\":\"$id\",\"published\":true}")";

std::vector<OutgoingMessage> messages(std::size_t count) {
  std::vector<OutgoingMessage> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back({.topic = "t", .id = std::to_string(i)});
  return all;
}

std::size_t count(const std::vector<PublishResult>& results, PublishStatus status) {
  return static_cast<std::size_t>(std::ranges::count(results, status, &PublishResult::status));
}

/// Returns the error of a call with one message.
std::string refusal_of(const std::string& command) {
  ProgramPublisher publish(command, 5s, [](const std::string&) {});
  try {
    (void)publish(messages(1));
    return "none";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

TEST_CASE("a program confirms a message only if it says so") {
  CHECK(refusal_of(program(confirm)) == "none");
  const char* neither = "the program's answer must have either \"published\":true or an \"error\"";
  CHECK(refusal_of("cat") == neither);
  CHECK(refusal_of(program(R"(echo "{\"id\":\"$id\",\"published\":false}")")) == neither);
  CHECK(refusal_of(program(R"(echo "{\"id\":\"$id\",\"published\":true,\"error\":\"no\"}")")) == neither);
  CHECK(refusal_of(program(R"(echo "{\"id\":\"$id\",\"published\":\"true\"}")")) ==
        "the program's \"published\" is not a boolean");
  CHECK(refusal_of(program(R"(echo "{\"id\":\"$id\",\"rejected\":1}")")) ==
        "the program's \"rejected\" is not a boolean");
  CHECK(refusal_of(program(R"(echo "{\"id\":\"$id\",\"error\":1}")")) == "the program's \"error\" is not a string");
  CHECK(refusal_of(program(R"(echo '{"id":"other","published":true}')")) ==
        "the program answers a message that it was not given");
  CHECK(refusal_of(program("echo nonsense")) != "none");
  CHECK(refusal_of("exit 1") == "the program has ended before it answered each message");
}

TEST_CASE("what a program has answered before it ends counts, and it is given the others again") {
  std::vector<std::string> reports;
  ProgramPublisher publish(program("[ $id = 3 ] && exit 1; " + confirm), 5s,
                           [&](const std::string& text) { reports.push_back(text); });
  const auto results = publish(messages(5));
  CHECK(count(results, PublishStatus::confirmed) == 3);
  CHECK(count(results, PublishStatus::postponed) == 2);
  CHECK(results[3].status == PublishStatus::postponed);
  CHECK(reports == std::vector<std::string>{
                       "the program has ended before it answered each message; it has answered 3 of 5 messages"});
  CHECK(publish(messages(3)).size() == 3);
}

TEST_CASE("a program that is too slow for a call gets fewer messages in the next one" * doctest::test_suite("timed")) {
  std::size_t reported = 0;
  ProgramPublisher publish(program("[ $id -ge 4 ] && exec sleep 60; " + confirm), 500ms,
                           [&](const std::string&) { ++reported; });
  CHECK(count(publish(messages(100)), PublishStatus::confirmed) == 4);
  CHECK(reported == 1);
  const auto next = publish(messages(100));
  CHECK(count(next, PublishStatus::confirmed) == 4);
  CHECK(count(next, PublishStatus::postponed) == 96);
  CHECK(reported == 1);  // it was given only 4
  CHECK(count(publish(messages(100)), PublishStatus::confirmed) == 4);
  CHECK(reported == 2);  // it was given 8
}

TEST_CASE("the end of a program that is too slow is a part of the call's time" * doctest::test_suite("timed")) {
  const std::string file = "slow_program_" + std::to_string(::getpid());
  ProgramPublisher publish("sleep 2; echo > " + file, 200ms, [](const std::string&) {});
  CHECK_THROWS_AS(publish(messages(1)), std::runtime_error);
  CHECK_FALSE(std::filesystem::exists(file));
  std::filesystem::remove(file);
}

TEST_CASE("a program gets neither the open files of the command nor its passwords") {
  const int file = ::fcntl(STDERR_FILENO, F_DUPFD, 50);  // the shell itself uses small numbers
  REQUIRE(file >= 50);
  ::setenv("TXINBOX_DB", "mariadb://user:secret@host/db", 1);
  ProgramPublisher publish(program(R"(echo "{\"id\":\"$id\",\"error\":\"[$TXINBOX_DB] $(echo /proc/$$/fd/*)\"}")"), 5s,
                           [](const std::string&) {});
  const auto results = publish(messages(1));
  ::unsetenv("TXINBOX_DB");
  ::close(file);
  CHECK(results[0].error.starts_with("[] "));
  CHECK(results[0].error.find("/fd/1") != std::string::npos);
  CHECK(results[0].error.find("/fd/" + std::to_string(file)) == std::string::npos);
}

}  // namespace
}  // namespace txinbox::test
