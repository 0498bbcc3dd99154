#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace txinbox::component {

/// Whether the bytes are valid UTF-8.
inline bool is_utf8(const std::string& bytes) {
  try {
    (void)nlohmann::json(bytes).dump();
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

}  // namespace txinbox::component
