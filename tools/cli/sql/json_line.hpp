#pragma once

#include <string_view>

#include "message/json/json_error.hpp"
#include "message/json/json_pointer.hpp"
#include "message/json/json_value.hpp"

namespace txinbox::cli {

using detail::JsonPointer;
using detail::JsonValue;

/// What is wrong with one line of the input. The text holds nothing of the line's values.
using LineError = detail::JsonError;

/// One line as a JSON object.
///
/// Errors: `LineError`, as `parse_json`, and when it is not an object.
JsonValue parse_json_line(std::string_view line);

}  // namespace txinbox::cli
