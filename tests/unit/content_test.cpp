#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/message.hpp>

using txinbox::content_of;

namespace {

using Fields = std::vector<std::string_view>;

/// All texts of at most `length` bytes, made of NUL and the bytes with a meaning in the format.
std::vector<std::string> texts_of(int length) {
  std::vector<std::string> all{""};
  for (std::size_t begin = 0; length > 0; --length) {
    const std::size_t end = all.size();
    for (; begin < end; ++begin) {
      for (const char c : {'1', '0', ':', ',', '\0'}) all.push_back(all[begin] + c);
    }
  }
  return all;
}

}  // namespace

TEST_CASE("fields are netstrings, in all versions") {
  CHECK(content_of({"hello world!"}) == "12:hello world!,");  // the example of the netstrings' specification
  CHECK(content_of({""}) == "0:,");
  CHECK(content_of({"a", "bc"}) == "1:a,2:bc,");
  CHECK(content_of({std::string_view("\0\xff,", 3), "EUR"}) == std::string_view("3:\0\xff,,3:EUR,", 12));
  CHECK(content_of({std::string(1000, 'x')}) == "1000:" + std::string(1000, 'x') + ",");
}

TEST_CASE("no content is compared only where there are no fields") {
  CHECK(content_of({}).empty());
  CHECK(content_of(Fields{}).empty());
  CHECK_FALSE(content_of({"", ""}).empty());
}

TEST_CASE("a list and a span of the same fields are the same content") {
  const Fields fields{"100.00", "", "DE-1"};
  CHECK(content_of(fields) == content_of({"100.00", "", "DE-1"}));
}

TEST_CASE("no two lists of fields have one content") {
  const std::vector<std::string> texts = texts_of(3);
  std::map<std::string, Fields> seen;
  const auto is_new = [&](const Fields& fields) { return seen.emplace(content_of(fields), fields).second; };
  int doubled = 0;
  for (const std::string& one : texts) {
    doubled += is_new({one}) ? 0 : 1;
    for (const std::string& other : texts) doubled += is_new({one, other}) ? 0 : 1;
  }
  for (const std::string& one : texts_of(1)) {
    for (const std::string& other : texts_of(1)) {
      for (const std::string& third : texts_of(1)) doubled += is_new({one, other, third}) ? 0 : 1;
    }
  }
  CHECK(doubled == 0);
  CHECK(seen.size() == texts.size() * (texts.size() + 1) + 6 * 6 * 6);
}
