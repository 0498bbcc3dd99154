#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace txinbox::fuzz {

/// nlohmann's JSON tree, with the same range of numbers as that of the command.
using ReferenceJson =
    nlohmann::basic_json<std::map, std::vector, std::string, bool, std::int64_t, std::uint64_t, long double>;

struct Reference {
  ReferenceJson root;
  bool has_duplicate = false;  ///< An object has two members with the same name.
  std::size_t depth = 0;       ///< The greatest depth of nested arrays and objects.
};

/// Parses the text with nlohmann. None if it is not JSON, or if a string is not UTF-8.
std::optional<Reference> read_reference(std::string_view text);

/// The numbers of a JSON text, as they are written in it, in order.
std::vector<std::string> numbers_in(std::string_view json);

}  // namespace txinbox::fuzz
