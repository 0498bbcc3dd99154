#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace txinbox::fuzz {

/// nlohmann's own tree, with the same range of numbers as the command's.
using ReferenceJson =
    nlohmann::basic_json<std::map, std::vector, std::string, bool, std::int64_t, std::uint64_t, long double>;

struct Reference {
  ReferenceJson root;
  bool has_duplicate = false;  ///< An object names one member twice.
  std::size_t depth = 0;       ///< Of arrays and objects.
};

/// The text as nlohmann reads it; none when it is no JSON, or no UTF-8 in a string.
std::optional<Reference> read_reference(std::string_view text);

/// The numbers of a JSON text as they stand in it, in order.
std::vector<std::string> numbers_in(std::string_view json);

}  // namespace txinbox::fuzz
