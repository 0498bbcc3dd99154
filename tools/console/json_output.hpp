#pragma once

// JSON for --json, written without the JSON library's header: to compile that takes several seconds for each file.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace txinbox::cli {

/// A text, a number, a bool or null. It does not own the text: use it only as an argument.
class JsonScalar {
 public:
  JsonScalar(std::nullptr_t) noexcept : value_(nullptr) {}
  JsonScalar(bool value) noexcept : value_(value) {}
  JsonScalar(double value) noexcept : value_(value) {}
  template <std::signed_integral Number>
  JsonScalar(Number value) noexcept : value_(std::int64_t{value}) {}
  template <std::unsigned_integral Number>
  JsonScalar(Number value) noexcept : value_(std::uint64_t{value}) {}
  JsonScalar(std::string_view text) noexcept : value_(text) {}
  JsonScalar(const std::string& text) noexcept : value_(std::string_view(text)) {}
  JsonScalar(const char* text) noexcept : value_(std::string_view(text)) {}

  using Value = std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string_view>;
  const Value& value() const noexcept { return value_; }

 private:
  Value value_;
};

/// An object, whose members keep their order, or an array.
class Json {
 public:
  using Members = std::initializer_list<std::pair<std::string_view, JsonScalar>>;

  static Json array();

  Json(Members members = {});
  ~Json();
  Json(Json&& other) noexcept;
  Json& operator=(Json&& other) noexcept;

  /// A member that is there already keeps its place.
  void set(std::string_view name, JsonScalar value);
  void set(std::string_view name, Json value);

  void append(JsonScalar element);
  void append(Json element);

  /// On one line. A byte that is no UTF-8 becomes U+FFFD: a database's own text need not be UTF-8.
  std::string text() const;

 private:
  struct Tree;
  std::unique_ptr<Tree> tree_;
};

/// The same of one value.
std::string json_text(JsonScalar value);

}  // namespace txinbox::cli
