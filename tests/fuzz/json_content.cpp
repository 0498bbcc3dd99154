// A content from JSON. It must consist of one netstring for each field that the pointers select. Two texts must have
// the same content if all their fields are equal, and only then.
//
// Input: the pointers with blanks between them, then two JSON texts, each on its own line.

#include <txinbox/json.hpp>

#include <charconv>
#include <vector>

#include <txinbox/error.hpp>

#include "fuzz.hpp"
#include "message/json/json_pointer.hpp"
#include "message/json/json_value.hpp"

using namespace txinbox::fuzz;
using namespace txinbox::detail;

namespace {

using Texts = std::vector<std::string>;

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> result;
  while (true) {
    const auto end = text.find(' ');
    result.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return result;
    text.remove_prefix(end + 1);
  }
}

// Decodes the netstrings as their specification says.
Texts decoded(std::string_view content) {
  Texts fields;
  while (!content.empty()) {
    std::size_t size = 0;
    const auto [end, error] = std::from_chars(content.data(), content.data() + content.size(), size);
    content.remove_prefix(static_cast<std::size_t>(end - content.data()));
    claim(error == std::errc() && content.starts_with(':') && content.size() > size + 1, "a netstring has its length");
    fields.emplace_back(content.substr(1, size));
    claim(content[size + 1] == ',', "a netstring ends with a comma");
    content.remove_prefix(size + 2);
  }
  return fields;
}

Texts expected(const std::vector<std::string_view>& pointers, const JsonValue& root) {
  Texts fields;
  for (const auto pointer : pointers) {
    const JsonValue* value = JsonPointer(pointer).find(root);
    fields.push_back(value == nullptr ? "" : to_json_text(*value));
    claim(value == nullptr || !fields.back().empty(), "a value differs from a missing value");
  }
  return fields;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Fields input(data, size);
  const auto pointers = words(input.line());
  const auto made = unless_refused<txinbox::Error>([&] { return txinbox::JsonContent(pointers); });
  bool right = true;
  for (const auto pointer : pointers) {
    right = right && unless_refused<txinbox::Error>([&] { return JsonPointer(pointer); });
  }
  claim(made.has_value() == right, "only an invalid pointer is refused");
  if (!made) return 0;

  std::vector<std::string> contents;
  std::vector<Texts> fields;
  for (int i = 0; i < 2; ++i) {
    const auto json = input.line();
    const auto root = unless_refused<txinbox::Error>([&] { return parse_json(json); });
    const auto content = unless_refused<txinbox::Error>([&] { return (*made)(json); });
    claim(content.has_value() == root.has_value(), "every JSON text has a content");
    if (!content) return 0;
    claim((*made)(txinbox::JsonDocument(json)) == *content, "a parsed text has the same content");
    fields.push_back(expected(pointers, *root));
    claim(decoded(*content) == fields.back(), "a content consists of the fields");
    contents.push_back(*content);
  }
  claim((contents[0] == contents[1]) == (fields[0] == fields[1]),
        "contents are equal if the fields are equal, and only then");
  return 0;
}
