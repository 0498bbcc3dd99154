#pragma once

#include <string>
#include <string_view>

namespace txinbox::cli {

/// The facts that an invalid first line shows about the whole input.
struct InputFormat {
  std::string hint = {};           // the likely cause, and how to convert the input; empty if the cause is unknown
  bool is_not_json_lines = false;  // no line of the input is a message: a line can be a part of one that looks like one
};

/// `line`: the first line that is not empty, or the begin of it if it is too long.
InputFormat format_of_invalid(std::string_view line, bool too_long);

}  // namespace txinbox::cli
