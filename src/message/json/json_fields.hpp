#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "message/json/json_pointer.hpp"
#include "message/json/json_value.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The fields of a message's content, as `JsonContent` describes them.
class JsonFields {
 public:
  JsonFields() = default;

  /// Errors: as `JsonPointer`.
  void add(std::string_view pointer) { pointers_.emplace_back(pointer); }

  bool empty() const { return pointers_.empty(); }

  /// Returns the content of these fields. It is empty only if there are no fields.
  std::string content(const JsonValue& root) const;

 private:
  std::vector<JsonPointer> pointers_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
