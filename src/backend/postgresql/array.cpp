#include "backend/postgresql/array.hpp"

#include <cstdint>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

void append(std::string& out, std::int32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    out += static_cast<char>((static_cast<std::uint32_t>(value) >> static_cast<unsigned>(shift)) & 0xFFU);
  }
}

}  // namespace

// The format is: the number of dimensions, whether there are NULLs, the element type. For the only dimension, its size
// and its first index follow. For each element, its length (-1 for NULL) and its bytes follow.
std::string postgresql_array(PostgresqlElement type, std::span<const std::string_view> elements) {
  std::string out;
  append(out, 1);
  append(out, 1);
  append(out, static_cast<std::int32_t>(type));
  append(out, static_cast<std::int32_t>(elements.size()));
  append(out, 1);
  for (const std::string_view each : elements) {
    append(out, each.empty() ? -1 : static_cast<std::int32_t>(each.size()));
    out += each;
  }
  return out;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
