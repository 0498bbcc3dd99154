#pragma once

// JSON for --json, declared without the JSON library's header, because this takes several seconds to compile in each
// file.

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

/// A string, a number, a bool or null. It does not own its string: use it only as an argument.
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

  /// Sets a member. If the member exists, it keeps its place.
  void set(std::string_view name, JsonScalar value);
  void set(std::string_view name, Json value);

  void append(JsonScalar element);
  void append(Json element);

  /// The JSON on one line. A byte that is not UTF-8 becomes U+FFFD, because texts of a database are not always UTF-8.
  std::string text() const;

 private:
  struct Tree;
  std::unique_ptr<Tree> tree_;
};

/// The JSON of one value.
std::string json_text(JsonScalar value);

}  // namespace txinbox::cli
