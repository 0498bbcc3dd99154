// The values that are bound to the SQL. Each must come from the right member or pointer, and must not lose information.
//
// Input: the database's name (postgresql: text with NUL is refused), the placeholders' names, the --bind options
// (both with blanks between them), and a line of JSON.

#include "cli/sql/bind.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include <txinbox/error.hpp>

#include "backend/sqlite3/real_number.hpp"
#include "fuzz.hpp"

using namespace txinbox::fuzz;
using namespace txinbox::cli;
using txinbox::cli::SqlLimits;
using txinbox::cli::SqlNumber;
using txinbox::cli::SqlValue;

namespace {

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> result;
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    if (end != 0) result.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

// Checks that the bound value represents the value of the line without loss.
void claim_holds(const SqlValue& bound, const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::null:
      return claim(std::holds_alternative<std::monostate>(bound), "null is NULL");
    case JsonValue::Kind::boolean:
      return claim(std::get<bool>(bound) == value.boolean, "a boolean keeps its value");
    case JsonValue::Kind::integer:
      return claim(std::get<long long>(bound) == value.integer, "an integer keeps its value");
    case JsonValue::Kind::number: {
      const std::string& text = std::get<SqlNumber>(bound).text;
      claim(text == value.text, "another number keeps its text");
      const auto real = txinbox::backend::sqlite3_real(text);
      return claim(!real || *real == std::strtod(text.c_str(), nullptr), "a real is the nearest double");
    }
    case JsonValue::Kind::string:
      return claim(std::get<std::string>(bound) == value.text, "a string keeps its characters");
    case JsonValue::Kind::array:
    case JsonValue::Kind::object:
      return claim(std::get<std::string>(bound) == to_json_text(value), "an array or object is bound as JSON text");
  }
}

bool is_refusable(const JsonValue& value, const SqlLimits& limits) {
  return value.kind == JsonValue::Kind::string && value.text.find('\0') != std::string::npos &&
         !limits.why_no_nul.empty();
}

// The pointer that an option assigns to a name. None if no option does; then the member with this name is used.
std::optional<JsonPointer> pointer_of(const std::string& name, const std::vector<std::string>& options) {
  for (const auto& option : options) {
    if (option.starts_with(name + "=")) return JsonPointer(option.substr(name.size() + 1));
  }
  return std::nullopt;
}

bool is_wrong(const std::vector<std::string>& names, const std::vector<std::string>& options) {
  std::vector<std::string> seen;
  for (const auto& option : options) {
    const auto equals = option.find('=');
    if (equals == std::string::npos) return true;
    const std::string name = option.substr(0, equals);
    if (std::find(names.begin(), names.end(), name) == names.end()) return true;
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) return true;
    seen.push_back(name);
    if (!unless_refused<txinbox::Error>([&] { return JsonPointer(option.substr(equals + 1)); })) return true;
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Fields fields(data, size);
  SqlLimits limits;
  if (fields.line().starts_with("postgresql")) limits.why_no_nul = "no NUL";
  Script script;
  for (auto& name : words(fields.line())) {
    if (!script.uses(name)) script.names.push_back(std::move(name));
  }
  const auto options = words(fields.line());
  const auto binder = unless_refused<txinbox::Error>([&] { return Binder(script, options); });
  claim(binder.has_value() != is_wrong(script.names, options), "only invalid options are refused");
  const auto line = fields.rest();
  const auto root = unless_refused<LineError>([&] { return parse_json_line(line); });
  if (!binder || !root) return 0;

  const auto values = unless_refused<LineError>([&] { return binder->bind(*root, line, limits); });
  bool refusable = false;
  for (std::size_t i = 0; i < script.names.size(); ++i) {
    const auto pointer = pointer_of(script.names[i], options);
    if (pointer && pointer->is_whole()) {
      if (values) claim(std::get<std::string>(values->at(i)) == line, "the empty pointer binds the whole line");
      continue;
    }
    const JsonValue* value = pointer ? pointer->find(*root) : root->find(script.names[i]);
    refusable = refusable || value == nullptr || is_refusable(*value, limits);
    if (values) {
      claim(value != nullptr, "a bound value exists in the line");
      claim_holds(values->at(i), *value);
    }
  }
  claim(values.has_value() != refusable, "a line is refused if a value is missing or contains NUL, and only then");
  return 0;
}
