// A key template. The key must consist of the literals and the values in order. Two lines with different values must
// have different keys, unless a value contains characters of the literals.
//
// Input: the template, then two lines of JSON.

#include <txinbox/json.hpp>

#include <vector>

#include <txinbox/error.hpp>

#include "cli/sql/bind.hpp"
#include "fuzz.hpp"

using namespace txinbox::fuzz;
using namespace txinbox::cli;

namespace {

struct Part {
  bool is_pointer;
  std::string text;
};

// A second parser of templates, as docs/operations/command.md describes them.
std::optional<std::vector<Part>> parts_of(std::string_view text) {
  if (text.starts_with('/')) return std::vector<Part>{{true, std::string(text)}};
  std::vector<Part> parts{{false, ""}};
  while (!text.empty()) {
    if (text.starts_with("{{") || text.starts_with("}}")) {
      parts.back().text += text[0];
      text.remove_prefix(2);
    } else if (text[0] == '}') {
      return std::nullopt;
    } else if (text[0] == '{') {
      const auto end = text.find('}');
      if (end == std::string_view::npos || end == 1) return std::nullopt;
      parts.push_back({true, std::string(text.substr(1, end - 1))});
      parts.push_back({false, ""});
      text.remove_prefix(end + 1);
    } else {
      parts.back().text += text[0];
      text.remove_prefix(1);
    }
  }
  if (parts.size() == 1) return std::nullopt;
  return parts;
}

struct Made {
  std::string key;
  std::vector<std::string> values;  // the values that the pointers select
};

// None if a pointer does not select a scalar.
std::optional<Made> make(const std::vector<Part>& parts, const JsonValue& line) {
  Made made;
  for (const auto& part : parts) {
    if (!part.is_pointer) {
      made.key += part.text;
      continue;
    }
    const JsonValue* value = JsonPointer(part.text).find(line);
    if (value == nullptr || !value->is_scalar()) return std::nullopt;
    const bool is_boolean = value->kind == JsonValue::Kind::boolean;
    made.values.push_back(is_boolean ? (value->boolean ? "true" : "false") : value->text);
    if (made.values.back().empty()) return std::nullopt;
    made.key += made.values.back();
  }
  return made;
}

// Whether there is a literal between every two pointers.
bool has_separators(const std::vector<Part>& parts) {
  for (std::size_t i = 2; i + 2 < parts.size(); i += 2) {
    if (parts[i].text.empty()) return false;
  }
  return true;
}

bool holds_some_of(const Made& made, const std::vector<Part>& parts) {
  for (const auto& part : parts) {
    if (part.is_pointer) continue;
    for (const auto& value : made.values) {
      if (value.find_first_of(part.text) != std::string::npos) return true;
    }
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Fields fields(data, size);
  const auto text = fields.line();
  const auto tried = unless_refused<txinbox::Error>([&] { return txinbox::JsonTemplate(text); });
  const auto parts = parts_of(text);
  if (!tried) {
    bool wrong = !parts;
    for (const auto& part : parts.value_or(std::vector<Part>{})) {
      wrong = wrong || (part.is_pointer && !unless_refused<txinbox::Error>([&] { return JsonPointer(part.text); }));
    }
    claim(wrong, "a template is refused only for an invalid brace or pointer");
    return 0;
  }
  claim(parts.has_value(), "an accepted text is a template");

  std::vector<Made> keys;
  for (int i = 0; i < 2; ++i) {
    const auto json = fields.line();
    const auto line = unless_refused<LineError>([&] { return parse_json_line(json); });
    if (!line) return 0;
    const auto expected = make(*parts, *line);
    const auto key = unless_refused<LineError>([&] { return (*tried)(json); });
    claim(key.has_value() == expected.has_value(),
          "a line has a key if all pointers select scalars that are not empty, and only then");
    if (!key) return 0;
    claim(*key == expected->key, "a key is the literals and the values in order");
    claim((*tried)(txinbox::JsonDocument(json)) == *key, "a parsed text has the same key");
    keys.push_back(*expected);
  }
  if (has_separators(*parts) && !holds_some_of(keys[0], *parts) && !holds_some_of(keys[1], *parts)) {
    claim((keys[0].key == keys[1].key) == (keys[0].values == keys[1].values),
          "keys are equal if the values are equal, and only then");
  }
  return 0;
}
