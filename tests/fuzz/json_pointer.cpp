// A JSON Pointer must find the same value as nlohmann's, and must be refused if nlohmann refuses it.
//
// Input: the pointer, then a line of JSON.

#include "cli/sql/bind.hpp"

#include <txinbox/error.hpp>

#include "fuzz.hpp"
#include "reference_json.hpp"

using namespace txinbox::fuzz;
using txinbox::cli::JsonPointer;
using txinbox::cli::JsonValue;

namespace {

// None if nlohmann finds no value.
std::optional<ReferenceJson> find_by_reference(const ReferenceJson& root, const ReferenceJson::json_pointer& pointer) {
  return unless_refused<ReferenceJson::exception>([&] { return root.at(pointer); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Fields fields(data, size);
  const std::string text(fields.line());
  const auto pointer = unless_refused<txinbox::Error>([&] { return JsonPointer(text); });
  const auto reference = unless_refused<ReferenceJson::parse_error>([&] { return ReferenceJson::json_pointer(text); });
  claim(pointer.has_value() == reference.has_value(), "a text is a pointer if nlohmann accepts it, and only then");
  if (!pointer) return 0;
  claim(pointer->is_whole() == text.empty(), "only the empty pointer selects the whole document");
  claim(pointer->text() == text, "a pointer keeps its text");

  const auto line = fields.rest();
  const auto root = unless_refused<txinbox::cli::LineError>([&] { return txinbox::cli::parse_json_line(line); });
  if (!root) return 0;
  const JsonValue* found = pointer->find(*root);
  const auto expected = find_by_reference(read_reference(line).value().root, *reference);
  claim((found != nullptr) == expected.has_value(), "a pointer finds a value if nlohmann's does, and only then");
  if (found != nullptr) {
    claim(read_reference(to_json_text(*found)).value().root == *expected,
          "a pointer finds the same value as nlohmann's");
  }
  return 0;
}
