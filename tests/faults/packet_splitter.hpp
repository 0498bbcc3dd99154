#pragma once

#include <cstddef>
#include <string_view>

namespace txinbox::test {

enum class Direction { to_server, to_client };

/// Finds the packets in one direction of one connection: MySQL's packets or PostgreSQL's messages.
class PacketSplitter {
 public:
  PacketSplitter(bool mysql, Direction);

  /// The size of the packet that `bytes` begins with, its header included; 0 while too little of it is
  /// there to tell.
  std::size_t packet_size(std::string_view bytes) const;

  /// The packet has passed.
  void passed() { first_ = false; }

 private:
  bool mysql_;
  bool first_;  ///< PostgreSQL's first message of a client has no type.
};

}  // namespace txinbox::test
