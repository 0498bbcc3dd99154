#include "cli/sql/json_line.hpp"

namespace txinbox::cli {

JsonValue parse_json_line(std::string_view line) {
  JsonValue root = detail::parse_json(line);
  if (root.kind != JsonValue::Kind::object) throw LineError("the line is JSON, but not an object");
  return root;
}

}  // namespace txinbox::cli
