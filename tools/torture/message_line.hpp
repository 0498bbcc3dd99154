#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace txinbox::torture {

/// Reads a line of JSON with `read_json`. Returns none if the line is incomplete or is not such a message.
template <class T, class Read>
std::optional<T> read_line(std::string_view line, const Read& read_json) {
  try {
    return read_json(nlohmann::json::parse(line));
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

/// The JSON on one line. A byte that is not UTF-8 becomes U+FFFD, because a database's text is not always UTF-8.
inline std::string as_line(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

}  // namespace txinbox::torture
