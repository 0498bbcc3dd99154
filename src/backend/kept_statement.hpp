#pragma once

#include <string>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

class Dialect;

enum class ParameterType { text, bytes, integer, uuid };

/// A value for a statement. A null pointer is NULL. Integers and UUIDs are written as text.
struct Parameter {
  std::string_view value;
  ParameterType type = ParameterType::text;
};

/// An INSERT, UPDATE or DELETE that the sessions of a pool keep prepared. Its address identifies it.
struct KeptStatement {
  /// Returns its text, in which `Dialect::parameter` stands for each value.
  std::string (*sql)(const Dialect&);
};

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
