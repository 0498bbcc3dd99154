#pragma once

#include <string>

#include <txinbox/error.hpp>

namespace txinbox::inline TXINBOX_ABI::detail {

/// What is wrong with the JSON of one message, which fails at each delivery. The text holds nothing of
/// its values.
class JsonError : public Error {
 public:
  explicit JsonError(const std::string& text) : Error(ErrorCode::invalid_key, text) {}
};

}  // namespace txinbox::inline TXINBOX_ABI::detail
