#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace txinbox::sim {

/// A value of a column, with the types of SQLite.
struct Value {
  enum class Type { null, integer, real, text, blob };

  Type type = Type::null;
  std::int64_t integer = 0;
  double real = 0;
  std::string bytes = {};  ///< Of a text or a blob.

  bool is_null() const noexcept { return type == Type::null; }
  friend bool operator==(const Value&, const Value&) = default;

  /// A text that is equal for equal values only, and that no other such text begins with.
  std::string encoded() const {
    std::string text(1, static_cast<char>('0' + static_cast<int>(type)));
    const std::string content = type == Type::integer ? std::to_string(integer)
                                : type == Type::real  ? std::to_string(real)
                                                      : bytes;
    return text.append(std::to_string(content.size())).append(1, ':').append(content);
  }
};

using Values = std::vector<Value>;

}  // namespace txinbox::sim
