#include "cli/sql/bind.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <txinbox/error.hpp>

#include "console/usage_error.hpp"

namespace txinbox::cli {

JsonPointer pointer_of_option(std::string_view option, std::string_view text) {
  try {
    return JsonPointer(text);
  } catch (const Error& error) {
    throw UsageError(fmt::format("{}: {}", option, error.what()));
  }
}

SqlValue to_sql(const JsonValue& value, const SqlLimits& limits) {
  switch (value.kind) {
    case JsonValue::Kind::null:
      return std::monostate{};
    case JsonValue::Kind::boolean:
      return value.boolean;
    case JsonValue::Kind::integer:
      return value.integer;
    case JsonValue::Kind::number:
      return SqlNumber{value.text};
    case JsonValue::Kind::string:
      if (!limits.why_no_nul.empty() && value.text.find('\0') != std::string::npos) {
        throw LineError(std::string(limits.why_no_nul));
      }
      return value.text;
    case JsonValue::Kind::array:
    case JsonValue::Kind::object:
      break;
  }
  return to_json_text(value);
}

Binder::Binder(const Script& script, const std::vector<std::string>& options) {
  for (const auto& name : script.names) sources_.push_back({name, std::nullopt});
  for (const auto& option : options) {
    const auto equals = option.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UsageError("--bind is NAME=POINTER, such as --bind user=/customer/id; NAME= alone is the whole line");
    }
    const std::string name = option.substr(0, equals);
    const auto source = std::find_if(sources_.begin(), sources_.end(), [&](const auto& s) { return s.name == name; });
    if (source == sources_.end()) {
      throw UsageError(fmt::format("--bind {}=…: the SQL has no placeholder :{}", name, name));
    }
    if (source->pointer) throw UsageError(fmt::format("--bind {}=… is given twice", name));
    source->pointer = pointer_of_option("--bind", std::string_view(option).substr(equals + 1));
  }
}

Values Binder::bind(const JsonValue& root, std::string_view line, const SqlLimits& limits) const {
  Values values;
  values.reserve(sources_.size());
  for (const auto& source : sources_) {
    if (source.pointer && source.pointer->is_whole()) {
      values.emplace_back(std::string(line));
      continue;
    }
    const JsonValue* value = source.pointer ? source.pointer->find(root) : root.find(source.name);
    if (value == nullptr) {
      throw LineError(source.pointer
                          ? fmt::format(":{}: there is no {}", source.name, source.pointer->text())
                          : fmt::format(":{}: there is no such member (a JSON null gives NULL)", source.name));
    }
    try {
      values.push_back(to_sql(*value, limits));
    } catch (const LineError& error) {
      throw LineError(fmt::format(":{}: {}", source.name, error.what()));
    }
  }
  return values;
}

JsonValue parse_json_line(std::string_view line) {
  JsonValue root = detail::parse_json(line);
  if (root.kind != JsonValue::Kind::object) {
    throw LineError("the line is JSON, but not an object", ErrorCode::unreadable);
  }
  return root;
}

}  // namespace txinbox::cli
