#include "reference_json.hpp"

#include <algorithm>
#include <set>

namespace txinbox::fuzz {

std::optional<Reference> read_reference(std::string_view text) {
  using Event = ReferenceJson::parse_event_t;
  Reference reference;
  std::vector<std::set<std::string>> open;
  const auto watch = [&](int /*depth*/, Event event, ReferenceJson& parsed) {
    if (event == Event::object_start || event == Event::array_start) {
      open.emplace_back();
      reference.depth = std::max(reference.depth, open.size());
    } else if (event == Event::object_end || event == Event::array_end) {
      open.pop_back();
    } else if (event == Event::key) {
      const bool is_new = open.back().insert(parsed.get<std::string>()).second;
      reference.has_duplicate = reference.has_duplicate || !is_new;
    }
    return true;
  };
  reference.root = ReferenceJson::parse(text.begin(), text.end(), watch, false);
  if (reference.root.is_discarded()) return std::nullopt;
  return reference;
}

std::vector<std::string> numbers_in(std::string_view json) {
  std::vector<std::string> numbers;
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '"') {
      for (++i; json[i] != '"'; ++i) {
        if (json[i] == '\\') ++i;
      }
    } else if (json[i] == '-' || (json[i] >= '0' && json[i] <= '9')) {
      const auto end = std::min(json.find_first_not_of("+-.0123456789eE", i), json.size());
      numbers.emplace_back(json.substr(i, end - i));
      i = end - 1;
    }
  }
  return numbers;
}

}  // namespace txinbox::fuzz
