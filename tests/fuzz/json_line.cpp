// A line of JSON. An accepted line must have the same values as nlohmann's parser finds, and every number must keep its
// text. A line may be refused only for a valid reason.

#include "cli/sql/bind.hpp"

#include <cmath>
#include <cstdlib>

#include "fuzz.hpp"
#include "reference_json.hpp"
#include "reference_utf8.hpp"

using namespace txinbox::fuzz;
using txinbox::cli::JsonValue;
using txinbox::cli::LineError;
using txinbox::detail::max_json_depth;

namespace {

using Kind = JsonValue::Kind;

void claim_number_equals(const JsonValue& value, const ReferenceJson& reference) {
  if (reference.is_number_float() || value.kind == Kind::number) {
    claim(value.kind == Kind::number, "a number that is not a 64-bit integer is kept as text");
    claim(std::strtold(value.text.c_str(), nullptr) == reference.get<long double>(), "a number's text has its value");
  } else {
    const bool fits = !reference.is_number_unsigned() || reference.get<std::uint64_t>() <= INT64_MAX;
    claim(fits && value.integer == reference.get<std::int64_t>(), "an integer has its value");
  }
}

void claim_equal(const JsonValue& value, const ReferenceJson& reference) {
  switch (value.kind) {
    case Kind::null:
      return claim(reference.is_null(), "null is null");
    case Kind::boolean:
      return claim(reference.is_boolean() && reference.get<bool>() == value.boolean, "a boolean has its value");
    case Kind::integer:
    case Kind::number:
      claim(reference.is_number(), "a number is a number for nlohmann");
      return claim_number_equals(value, reference);
    case Kind::string:
      return claim(reference.is_string() && reference.get<std::string>() == value.text, "a string has its characters");
    case Kind::array:
      claim(reference.is_array() && reference.size() == value.items.size(), "an array has its elements");
      for (std::size_t i = 0; i < value.items.size(); ++i) claim_equal(value.items[i], reference[i]);
      return;
    case Kind::object:
      claim(reference.is_object() && reference.size() == value.items.size() && value.names.size() == value.items.size(),
            "an object has its members");
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        claim(reference.contains(value.names[i]), "a member has its name");
        claim(value.find(value.names[i]) == &value.items[i], "a member is found by its name");
        claim_equal(value.items[i], reference[value.names[i]]);
      }
      return;
  }
}

void claim_refusal_has_reason(std::string_view line, const std::string& why) {
  claim(why.size() < 80, "the text of a refusal is short and does not contain the line");
  if (!is_utf8_by_iconv(line) || line.find('\0') != std::string_view::npos) return;
  const auto reference = read_reference(line);
  claim(!reference || !reference->root.is_object() || reference->has_duplicate ||
            reference->depth > static_cast<std::size_t>(max_json_depth),
        "only an invalid object is refused");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  try {
    const JsonValue root = txinbox::cli::parse_json_line(line);
    const auto reference = read_reference(line);
    claim(reference.has_value(), "an accepted line is JSON");
    claim(!reference->has_duplicate, "no member is named twice");
    claim(reference->depth <= static_cast<std::size_t>(max_json_depth), "the depth is limited");
    claim(is_utf8_by_iconv(line), "an accepted line is UTF-8");
    claim_equal(root, reference->root);

    const std::string text = to_json_text(root);
    claim(numbers_in(text) == numbers_in(line), "each number is written as it is in the line");
    claim_equal(root, read_reference(text).value().root);
    claim(to_json_text(txinbox::cli::parse_json_line(text)) == text, "JSON text is read as it was written");
  } catch (const LineError& error) {
    claim_refusal_has_reason(line, error.what());
  }
  return 0;
}
