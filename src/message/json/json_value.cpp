#include "message/json/json_value.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "message/json/json_value.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

// Use long double, so that a number beyond a double's range is not refused. Only its text matters.
using Json = nlohmann::basic_json<std::map, std::vector, std::string, bool, std::int64_t, std::uint64_t, long double>;

// Builds the tree from nlohmann's events. The event of a floating-point number has the number's text.
class TreeBuilder {
 public:
  JsonValue root;
  std::string error;

  bool null() { return add({}) != nullptr; }

  bool boolean(bool value) {
    JsonValue v;
    v.kind = JsonValue::Kind::boolean;
    v.boolean = value;
    return add(std::move(v)) != nullptr;
  }

  // nlohmann calls this only for integers with a minus sign. So a value of 0 means that the text was -0.
  bool number_integer(std::int64_t value) { return add_integer(value, value == 0 ? "-0" : std::to_string(value)); }

  bool number_unsigned(std::uint64_t value) {
    std::string text = std::to_string(value);
    if (value > static_cast<std::uint64_t>(INT64_MAX)) return add_number(std::move(text));
    return add_integer(static_cast<std::int64_t>(value), std::move(text));
  }

  bool number_float(long double /*value*/, const std::string& text) { return add_number(text); }

  bool string(std::string& value) {
    JsonValue v;
    v.kind = JsonValue::Kind::string;
    v.text = std::move(value);
    return add(std::move(v)) != nullptr;
  }

  bool binary(Json::binary_t& /*value*/) { return false; }  // JSON text has no binary values

  bool start_object(std::size_t /*size*/) { return open(JsonValue::Kind::object); }
  bool start_array(std::size_t /*size*/) { return open(JsonValue::Kind::array); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    if (!is_new(name)) {
      error = "malformed JSON: an object names one member twice";
      return false;
    }
    open_.back()->names.push_back(std::move(name));
    return true;
  }

  // Do not use nlohmann's own text: it quotes the input, which may be personal data.
  template <class Exception>
  bool parse_error(std::size_t position, const std::string& /*token*/, const Exception& /*exception*/) {
    error = fmt::format("malformed JSON at byte {}", position);
    return false;
  }

 private:
  bool is_new(const std::string& name) {
    constexpr std::size_t few = 16;  // up to here, comparing one by one is faster and needs no memory
    const auto& names = open_.back()->names;
    if (names.size() < few) return std::find(names.begin(), names.end(), name) == names.end();
    auto& seen = seen_.back();
    if (seen.empty()) seen.insert(names.begin(), names.end());
    return seen.insert(name).second;
  }

  JsonValue* add(JsonValue value) {
    if (++count_ > max_json_values) {
      error = fmt::format("more than {} values", max_json_values);
      return nullptr;
    }
    if (open_.empty()) {
      root = std::move(value);
      return &root;
    }
    open_.back()->items.push_back(std::move(value));
    return &open_.back()->items.back();
  }

  bool add_integer(std::int64_t value, std::string text) {
    JsonValue v;
    v.kind = JsonValue::Kind::integer;
    v.integer = value;
    v.text = std::move(text);
    return add(std::move(v)) != nullptr;
  }

  bool add_number(std::string text) {
    JsonValue v;
    v.kind = JsonValue::Kind::number;
    v.text = std::move(text);
    return add(std::move(v)) != nullptr;
  }

  bool open(JsonValue::Kind kind) {
    if (open_.size() >= static_cast<std::size_t>(max_json_depth)) {
      error = fmt::format("arrays and objects nest deeper than {}", max_json_depth);
      return false;
    }
    JsonValue v;
    v.kind = kind;
    if (open_.empty()) {  // the root: few messages have more members than this
      v.names.reserve(8);
      v.items.reserve(8);
    }
    JsonValue* const added = add(std::move(v));
    if (added == nullptr) return false;
    open_.push_back(added);
    seen_.emplace_back();
    return true;
  }

  bool close() {
    open_.pop_back();
    seen_.pop_back();
    return true;
  }

  std::size_t count_ = 0;                    // the number of values
  std::vector<JsonValue*> open_;             // each points to the last item of the one before it, so none moves
  std::vector<std::set<std::string>> seen_;  // for each open object: its names, if there are many
};

void append(std::string& out, const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::null:
      out += "null";
      break;
    case JsonValue::Kind::boolean:
      out += value.boolean ? "true" : "false";
      break;
    case JsonValue::Kind::integer:
    case JsonValue::Kind::number:
      out += value.text;
      break;
    case JsonValue::Kind::string:
      append_json_string(out, value.text);
      break;
    case JsonValue::Kind::array:
      out += '[';
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        if (i != 0) out += ',';
        append(out, value.items[i]);
      }
      out += ']';
      break;
    case JsonValue::Kind::object:
      out += '{';
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        if (i != 0) out += ',';
        append_json_string(out, value.names[i]);
        out += ':';
        append(out, value.items[i]);
      }
      out += '}';
      break;
  }
}

}  // namespace

const JsonValue* JsonValue::find(std::string_view name) const {
  const auto at = std::find(names.begin(), names.end(), name);
  return at == names.end() ? nullptr : &items[static_cast<std::size_t>(at - names.begin())];
}

JsonValue parse_json(std::string_view text) {
  if (const auto at = find_invalid_utf8(text); at != std::string_view::npos) {
    throw JsonError(fmt::format("invalid UTF-8 at byte {}", at + 1), ErrorCode::unreadable);
  }
  // nlohmann treats NUL as the end of the text, and would accept the text before it.
  if (const auto at = text.find('\0'); at != std::string_view::npos) {
    throw JsonError(fmt::format("malformed JSON at byte {}", at + 1), ErrorCode::unreadable);
  }
  TreeBuilder builder;
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) throw JsonError(builder.error, ErrorCode::unreadable);
  return std::move(builder.root);
}

std::string to_json_text(const JsonValue& value) {
  std::string result;
  append(result, value);
  return result;
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
