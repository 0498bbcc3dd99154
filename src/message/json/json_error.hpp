#pragma once

#include <string>

#include <txinbox/error.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// An error in the JSON of one message. The message fails at each delivery. The text contains none of its values.
class JsonError : public Error {
 public:
  explicit JsonError(const std::string& text) : Error(ErrorCode::invalid_key, text) {}
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
