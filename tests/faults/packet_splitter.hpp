#pragma once

#include <cstddef>
#include <string_view>

namespace txinbox::test {

enum class Direction { to_server, to_client };

/// Finds the packets in one direction of one connection: MySQL's packets or PostgreSQL's messages.
class PacketSplitter {
 public:
  PacketSplitter(bool mysql, Direction);

  /// The size of the packet at the beginning of `bytes`, including its header. 0 if the header is not complete yet.
  std::size_t packet_size(std::string_view bytes) const;

  /// Records that a packet has passed.
  void passed() { first_ = false; }

 private:
  bool mysql_;
  bool first_;  ///< On PostgreSQL, the first message of a client has no type.
};

}  // namespace txinbox::test
