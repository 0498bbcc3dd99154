#include "run/delivery_key.hpp"

#include <optional>
#include <string_view>

#include <txinbox/error.hpp>

#include "base/hex.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

/// The value of the only header of this name. Which of two values identifies the message is not known, so it is none.
std::optional<std::string_view> only_header(const Incoming& incoming, const std::string& name) {
  const auto first = incoming.header(name);
  for (const IncomingHeader& each : incoming.headers) {
    if (each.name == name && each.value != *first) {
      throw Error(ErrorCode::invalid_key, "the message has several headers " + name + " with different values");
    }
  }
  return first;
}

}  // namespace

std::string delivery_value(const Incoming& incoming, const KeyPart& part) {
  const bool is_header = part.kind == KeyPart::Kind::header;
  const std::string what = is_header ? "header " + part.text : "record key";
  const auto value = is_header ? only_header(incoming, part.text) : incoming.key;
  if (!value) throw Error(ErrorCode::invalid_key, "the message has no " + what);
  if (value->empty()) throw Error(ErrorCode::invalid_key, "the message's " + what + " is empty");
  return part.is_hex ? to_hex(*value) : std::string(*value);
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
