#pragma once

#include <string>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

class Dialect;

enum class ParameterType { text, bytes, integer, uuid };

/// A value for a statement. A null pointer means NULL. Integers and UUIDs are passed as text.
struct Parameter {
  std::string_view value;
  ParameterType type = ParameterType::text;
};

/// An INSERT, UPDATE or DELETE that the sessions of a pool keep prepared. Its address identifies it.
struct KeptStatement {
  /// Returns the text of the statement, with a `Dialect::parameter` in the place of each value.
  std::string (*sql)(const Dialect&);
};

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
