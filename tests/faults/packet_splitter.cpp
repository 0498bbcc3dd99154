#include "faults/packet_splitter.hpp"

#include <cstdint>

namespace txinbox::test {
namespace {

std::size_t byte_at(std::string_view bytes, std::size_t at) { return static_cast<std::uint8_t>(bytes[at]); }

}  // namespace

PacketSplitter::PacketSplitter(bool mysql, Direction direction)
    : mysql_(mysql), first_(direction == Direction::to_server) {}

std::size_t PacketSplitter::packet_size(std::string_view bytes) const {
  if (mysql_) {  // three bytes of length, in little-endian order, and a sequence number
    if (bytes.size() < 4) return 0;
    return 4 + byte_at(bytes, 0) + (byte_at(bytes, 1) << 8U) + (byte_at(bytes, 2) << 16U);
  }
  const std::size_t type = first_ ? 0 : 1;  // then four bytes of length, in big-endian order; the length includes them
  if (bytes.size() < type + 4) return 0;
  std::size_t size = 0;
  for (std::size_t i = 0; i < 4; ++i) size = (size << 8U) + byte_at(bytes, type + i);
  return type + size;
}

}  // namespace txinbox::test
