#include "copied_headers.hpp"

#include <string_view>

#include "connection.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rabbitmq {

void rename_routing_headers(std::vector<amqp_table_entry_t>& headers) {
  for (amqp_table_entry_t& header : headers) {
    const std::string_view name = view_of(header.key);
    if (name == "CC") header.key = amqp_cstring_bytes("txinbox-cc");
    if (name == "BCC") header.key = amqp_cstring_bytes("txinbox-bcc");
  }
}

bool fits_into_frame(const amqp_basic_properties_t& properties, std::size_t frame_max) {
  // Each frame has a header of 7 bytes and an end of 1. The frame of the properties begins with 12 more.
  constexpr std::size_t overhead = 20;
  if (frame_max <= overhead) return false;
  std::vector<char> memory(frame_max - overhead);
  amqp_basic_properties_t copy = properties;
  return amqp_encode_properties(AMQP_BASIC_CLASS, &copy, {.len = memory.size(), .bytes = memory.data()}) >= 0;
}

}  // namespace rabbitmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
