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

  /// A text that is equal for equal values only, and that no other such text begins with. The texts of two integers,
  /// two texts or two blobs have the order of the values.
  std::string encoded() const {
    std::string text(1, static_cast<char>('0' + static_cast<int>(type)));
    if (type == Type::integer) {
      for (int shift = 56; shift >= 0; shift -= 8) text += static_cast<char>(shifted(integer) >> shift & 0xff);
      return text;
    }
    for (const char each : type == Type::real ? std::to_string(real) : bytes) {
      text += each;
      if (each == '\0') text += '\xff';
    }
    return text.append(2, '\0');
  }

 private:
  /// The smallest integer becomes 0.
  static std::uint64_t shifted(std::int64_t number) noexcept {
    return static_cast<std::uint64_t>(number) ^ (std::uint64_t{1} << 63);
  }
};

using Values = std::vector<Value>;

}  // namespace txinbox::sim
