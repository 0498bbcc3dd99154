#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include "cli/consume/batch_reader.hpp"

using namespace txinbox::cli;
using Status = BatchReader::Status;

namespace {

// A reader of a pipe, into which the text was written. The writer stays open until `end`.
class Fixture {
 public:
  explicit Fixture(BatchReader::Limits limits) : lines(pipe(), -1, 1000), reader(lines, messages, limits) {}
  ~Fixture() {
    ::close(ends[0]);
    end();
  }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;

  void write(std::string_view text) const {
    REQUIRE(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  void end() {
    if (ends[1] >= 0) ::close(ends[1]);
    ends[1] = -1;
  }

  // The lines of the next batch: the key of a message, or an exclamation mark for an invalid line.
  std::string next(Status expected) {
    CHECK(reader.next(batch) == expected);
    std::string text;
    std::size_t message = 0;
    for (const auto& line : batch.lines) {
      if (!text.empty()) text += ' ';
      text += std::to_string(line.number) + (line.is_message() ? batch.messages.at(message++).business_key : "!");
    }
    CHECK(message == batch.messages.size());
    CHECK(message == batch.values.size());
    return text;
  }

  Batch batch;

 private:
  int pipe() {
    REQUIRE(::pipe(ends) == 0);
    return ends[0];
  }

  static ConsumeOptions options() {
    ConsumeOptions result;
    result.key = "/k";
    return result;
  }

  int ends[2] = {-1, -1};
  Script script{.statements = {}, .names = {"k"}};
  MessageReader messages{options(), script, {}};
  LineReader lines;
  BatchReader reader;
};

constexpr std::size_t many = 1'000'000;

std::string line(const std::string& key) { return "{\"k\":\"" + key + "\"}\n"; }

}  // namespace

TEST_CASE("a batch has the lines that have arrived, up to its limit of lines") {
  Fixture f({.lines = 3, .bytes = many});
  f.write(line("a") + "{\n" + line("c") + line("d") + line("e") + "{\"k\":");
  CHECK(f.next(Status::more) == "1a 2! 3c");
  CHECK(f.next(Status::more) == "4d 5e");
  f.write("\"f\"}\n");
  CHECK(f.next(Status::more) == "6f");
  f.write(line("g"));
  f.end();
  CHECK(f.next(Status::end) == "7g");
  CHECK(f.next(Status::end).empty());
}

TEST_CASE("a batch is full when its lines have reached the limit of bytes") {
  Fixture f({.lines = 100, .bytes = 15});
  f.write(line("a") + line("b") + line("c") + line(std::string(50, 'd')) + line("e"));
  f.end();
  CHECK(f.next(Status::more) == "1a 2b");
  CHECK(f.next(Status::more) == "3c 4" + std::string(50, 'd'));
  CHECK(f.next(Status::end) == "5e");
}

TEST_CASE("empty lines belong to the line before them, and are not a batch") {
  Fixture f({.lines = 100, .bytes = many});
  f.write("\n \n" + line("a") + "\n\n" + line("b") + "\n");
  f.end();
  CHECK(f.next(Status::end) == "3a 6b");
  CHECK(f.batch.empty_through == 2);
  CHECK(f.batch.lines[0].through == 5);
  CHECK(f.batch.lines[1].through == 7);
}

TEST_CASE("if the order matters, an invalid line ends its batch") {
  Fixture f({.lines = 100, .bytes = many, .ends_at_wrong = true});
  f.write(line("a") + "{}\n" + line("c"));
  f.end();
  CHECK(f.next(Status::more) == "1a 2!");
  CHECK(f.next(Status::end) == "3c");
}

TEST_CASE("a line that is too long is skipped, and reported as invalid") {
  Fixture f({.lines = 100, .bytes = many});
  f.write(line("a") + line(std::string(2000, 'x')) + line("c"));
  f.end();
  CHECK(f.next(Status::end) == "1a 2! 3c");
  CHECK(f.batch.lines[1].wrong == "longer than 64 MiB");
}
