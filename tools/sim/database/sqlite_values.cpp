#include "sim/database/sqlite_values.hpp"

#include <utility>

namespace txinbox::sim {

Value text_value(std::string text) { return {.type = Value::Type::text, .bytes = std::move(text)}; }

Value value_of(sqlite3_value* value) {
  const auto bytes = [value](const void* data) {
    return std::string(static_cast<const char*>(data), static_cast<std::size_t>(sqlite3_value_bytes(value)));
  };
  switch (sqlite3_value_type(value)) {
    case SQLITE_INTEGER:
      return {.type = Value::Type::integer, .integer = sqlite3_value_int64(value)};
    case SQLITE_FLOAT:
      return {.type = Value::Type::real, .real = sqlite3_value_double(value)};
    case SQLITE_TEXT:
      return text_value(bytes(sqlite3_value_text(value)));
    case SQLITE_BLOB:
      return {.type = Value::Type::blob, .bytes = bytes(sqlite3_value_blob(value))};
    default:
      return {};
  }
}

Value column_of(sqlite3_stmt* statement, int column) {
  const auto bytes = [&](const void* data) {
    return std::string(static_cast<const char*>(data),
                       static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
  };
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return {.type = Value::Type::integer, .integer = sqlite3_column_int64(statement, column)};
    case SQLITE_FLOAT:
      return {.type = Value::Type::real, .real = sqlite3_column_double(statement, column)};
    case SQLITE_TEXT:
      return text_value(bytes(sqlite3_column_text(statement, column)));
    case SQLITE_BLOB:
      return {.type = Value::Type::blob, .bytes = bytes(sqlite3_column_blob(statement, column))};
    default:
      return {};
  }
}

void bind(sqlite3_stmt* statement, const Values& parameters) {
  int position = 0;
  for (const Value& each : parameters) {
    ++position;
    const auto size = static_cast<int>(each.bytes.size());
    switch (each.type) {
      case Value::Type::null:
        sqlite3_bind_null(statement, position);
        break;
      case Value::Type::integer:
        sqlite3_bind_int64(statement, position, each.integer);
        break;
      case Value::Type::real:
        sqlite3_bind_double(statement, position, each.real);
        break;
      case Value::Type::text:
        sqlite3_bind_text(statement, position, each.bytes.data(), size, SQLITE_STATIC);
        break;
      case Value::Type::blob:
        sqlite3_bind_blob(statement, position, each.bytes.data(), size, SQLITE_STATIC);
        break;
    }
  }
}

}  // namespace txinbox::sim
