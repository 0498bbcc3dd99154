// Inputs that are not JSON lines.

#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "cli/orders.hpp"

using namespace txinbox::test;

namespace {

std::string utf16(const std::string& ascii, bool big_endian) {
  std::string text;
  for (const char c : ascii) text += big_endian ? std::string({'\0', c}) : std::string({c, '\0'});
  return text;
}

std::string without_line_feed(std::string line) {
  std::erase(line, '\n');
  return line;
}

const std::string lines = Orders::line(1) + Orders::line(2);

}  // namespace

TEST_CASE("an input that is not JSON lines is refused at its first line, with the remedy") {
  const std::string first = without_line_feed(Orders::line(1));
  // Line 4 of each pretty-printed input looks like a message.
  for (const auto& invalid : {
           std::pair<std::string, std::string>{"[\n" + first + ",\n\n" + Orders::line(2) + "]\n", "jq -c '.[]' FILE"},
           {" [" + first + ",\n\n\n" + Orders::line(2) + "]\n", "jq -c '.[]' FILE"},
           {"{\n\"no\":\"x\",\"sku\":\"a\",\"qty\":1,\n\"parts\":[\n" + Orders::line(2) + "]}\n", "jq -c . FILE"},
           {"{\"no\":\"x\",\n\"sku\":\"a\",\"qty\":1,\n\"parts\":[\n" + Orders::line(2) + "]}\n", "jq -c . FILE"},
           {"{\"parts\":[\r\n\r\n\r\n" + Orders::line(2) + "],\r\n\"no\":\"x\",\"sku\":\"a\",\"qty\":1}\r\n",
            "jq -c . FILE"},
           {"\xFF\xFE" + utf16(lines, false), "iconv -f UTF-16 -t UTF-8 FILE"},
           {"\xFE\xFF" + utf16(lines, true), "iconv -f UTF-16 -t UTF-8 FILE"},
           {utf16(lines, false), "iconv -f UTF-16LE -t UTF-8 FILE"},
           {utf16(lines, true), "iconv -f UTF-16BE -t UTF-8 FILE"},
       }) {
    const auto& input = invalid.first;
    const auto& remedy = invalid.second;  // clang 14 cannot capture a structured binding
    CAPTURE(remedy);
    const Orders orders;
    const Ended ended = orders.consume(input);
    CAPTURE(ended.err);
    CHECK(ended.status == 1);
    CHECK(ended.err.starts_with("line 1: "));
    CHECK(ended.err.ends_with("; convert it with " + remedy + "\n"));
    CHECK(std::ranges::count(ended.err, '\n') == 1);
    CHECK(counts(ended) == "consumed 0, already consumed 0, conflicts 0, parked 0, failed 1");
    CHECK(ended.last_line().ends_with("  stopped: no line is handled, go on at line 1"));
    CHECK(orders.orders() == 0);
  }
}

TEST_CASE("the first line can be invalid in an input of JSON lines") {
  for (const auto& invalid : {std::pair<std::string, std::string>{"[1]", "jq -c '.[]' FILE"},
                              {"[{\"no\":\"x\",\"sku\":\"a\",\"qty\":1}]", "jq -c '.[]' FILE"},
                              {R"({"no":"cu)", "jq -c . FILE"},
                              {R"(o0","sku":"a","qty":1})", ""},
                              {R"({"no":"x" "sku":"a"})", ""},
                              {"{}", ""},
                              {std::string("\0\0\0\0", 4), ""},
                              {"null", ""}}) {
    const auto& line = invalid.first;
    const auto& remedy = invalid.second;
    CAPTURE(line);
    const Orders orders;
    const Ended ended = orders.consume("\n" + line + "\n" + lines + line + "\n");
    CAPTURE(ended.err);
    CHECK(ended.status == 1);
    const std::string first = ended.err.substr(0, ended.err.find('\n'));
    CHECK(first.starts_with("line 2: "));
    if (remedy.empty()) {
      CHECK(first.find("convert") == std::string::npos);
    } else {
      CHECK(first.ends_with("; convert it with " + remedy));
    }
    CHECK(ended.err.find("convert", first.size()) == std::string::npos);
    CHECK(counts(ended) == "consumed 2, already consumed 0, conflicts 0, parked 0, failed 2");
  }
}

TEST_CASE("an array that is longer than a line may be is named") {
  const Orders orders;
  Command command(Orders::arguments(), orders.db.url());
  command.write("[");
  const std::string piece = std::string(1'000'000, ' ');
  for (int i = 0; i < 68; ++i) command.write(piece);
  command.write("]\n" + lines);
  const Ended ended = command.wait();
  CHECK(ended.err.starts_with("line 1: longer than 64 MiB; "));
  CHECK(ended.err.ends_with("; convert it with jq -c '.[]' FILE\n"));
  CHECK(orders.orders() == 2);
}
