#include <cstdio>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include "console/line_reader.hpp"

using namespace txinbox::cli;

namespace {

struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() { REQUIRE(::pipe(ends) == 0); }
  ~Pipe() {
    ::close(ends[0]);
    close_writer();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_writer() {
    if (ends[1] >= 0) ::close(ends[1]);
    ends[1] = -1;
  }
  void write(std::string_view text) const {
    REQUIRE(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
};

// Each line, with "<too long>" for one that was skipped.
std::vector<std::string> lines(const std::string& input, std::size_t limit) {
  Pipe pipe;
  std::thread writer([&] {
    for (std::size_t at = 0; at < input.size();) {
      const auto count = ::write(pipe.ends[1], input.data() + at, input.size() - at);
      if (count <= 0) break;
      at += static_cast<std::size_t>(count);
    }
    pipe.close_writer();
  });
  LineReader reader(pipe.ends[0], -1, limit);
  std::vector<std::string> result;
  std::string_view line;
  while (true) {
    const auto status = reader.next(line);
    if (status != LineReader::Status::line && status != LineReader::Status::too_long) break;
    result.emplace_back(status == LineReader::Status::line ? line : "<too long>");
    CHECK(reader.number() == result.size());
  }
  writer.join();
  return result;
}

}  // namespace

TEST_CASE("lines end in LF or CRLF, and the last one may end in nothing") {
  using Lines = std::vector<std::string>;
  CHECK(lines("", 10).empty());
  CHECK(lines("a\nb\r\n\nc", 10) == Lines{"a", "b", "", "c"});
  CHECK(lines("a\n", 10) == Lines{"a"});
  CHECK(lines("\n\n", 10) == Lines{"", ""});
  CHECK(lines("\xEF\xBB\xBF{}\n\xEF\xBB\xBF", 10) == Lines{"{}", "\xEF\xBB\xBF"});
}

TEST_CASE("a line longer than the limit is skipped to its end") {
  using Lines = std::vector<std::string>;
  CHECK(lines("1234567890\n12345678901\nx\n", 10) == Lines{"1234567890", "<too long>", "x"});
  CHECK(lines("\xEF\xBB\xBF"
              "1234567890\r\nx",
              10) == Lines{"1234567890", "x"});
  CHECK(lines(std::string(1'000'000, 'a') + "\nx\n" + std::string(1'000'000, 'b'), 10) ==
        Lines{"<too long>", "x", "<too long>"});
  const std::string big(999'999, 'c');
  CHECK(lines(big + "\nx", 1'000'000) == Lines{big, "x"});
}

TEST_CASE("a waiting reader ends when wake_fd becomes readable") {
  Pipe input;
  Pipe wake;
  LineReader reader(input.ends[0], wake.ends[0], 10);
  std::thread waker([&] { CHECK(::write(wake.ends[1], "x", 1) == 1); });
  std::string_view line;
  CHECK(reader.next(line) == LineReader::Status::stopped);
  waker.join();
}

TEST_CASE("a reader that does not wait returns the complete lines, and keeps an incomplete one") {
  using Status = LineReader::Status;
  constexpr auto no = LineReader::Wait::no;
  Pipe pipe;
  LineReader reader(pipe.ends[0], -1, 10);
  std::string_view line;
  CHECK(reader.next(line, no) == Status::none);
  pipe.write("one\ntwo\nth");
  CHECK(reader.next(line, no) == Status::line);
  CHECK(line == "one");
  CHECK(reader.next(line, no) == Status::line);
  CHECK(line == "two");
  CHECK(reader.next(line, no) == Status::none);
  CHECK(reader.number() == 2);
  pipe.write("re");
  CHECK(reader.next(line, no) == Status::none);
  pipe.write("e\n\n");
  CHECK(reader.next(line, no) == Status::line);
  CHECK(line == "three");
  CHECK(reader.next(line, no) == Status::line);
  CHECK(line.empty());
  CHECK(reader.number() == 4);
  pipe.write("12345678");
  CHECK(reader.next(line, no) == Status::none);
  pipe.write("90123456");
  CHECK(reader.next(line, no) == Status::none);
  pipe.write("\nlast");
  CHECK(reader.next(line, no) == Status::too_long);
  CHECK(reader.next(line, no) == Status::none);
  pipe.close_writer();
  CHECK(reader.next(line, no) == Status::line);
  CHECK(line == "last");
  CHECK(reader.next(line, no) == Status::end);
  CHECK(reader.number() == 6);
}

TEST_CASE("a file that grows while it is read is read to its end, and one that shrinks ends there") {
  std::FILE* const file = std::tmpfile();
  REQUIRE(file != nullptr);
  const int fd = ::fileno(file);
  auto append = [&](std::string_view text) {
    REQUIRE(::pwrite(fd, text.data(), text.size(), ::lseek(fd, 0, SEEK_CUR)) == static_cast<ssize_t>(text.size()));
  };
  LineReader reader(fd, -1, 1000);
  std::string_view line;
  append("one\ntw");
  REQUIRE(reader.next(line) == LineReader::Status::line);
  CHECK(line == "one");
  append("o\nthree\n");  // after the part that was read
  REQUIRE(reader.next(line) == LineReader::Status::line);
  CHECK(line == "two");
  REQUIRE(::ftruncate(fd, 3) == 0);  // lines in memory are still returned
  REQUIRE(reader.next(line) == LineReader::Status::line);
  CHECK(line == "three");
  CHECK(reader.next(line) == LineReader::Status::end);
  CHECK(reader.number() == 3);
  std::fclose(file);
}
