#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <librdkafka/rdkafka.h>
#include <txinbox/source.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace kafka {

/// A copy of a record's bytes. A record of librdkafka would keep the broker's whole response in memory.
struct Record {
  std::string bytes;  ///< The body, the key, and the names and values of the headers.
  std::vector<IncomingHeader> headers;
  std::string id;  ///< It begins with the topic. A topic has at most 249 bytes, so it is whole.
  std::size_t topic_size = 0;
  std::int64_t offset = 0;

  std::string_view topic() const { return std::string_view(id).substr(0, topic_size); }
};

/// Makes a delivery from a record. Its owner is a `Record`, and its ticket is `epoch`.
Incoming incoming_of(const rd_kafka_message_t& message, std::uint64_t lane, std::uint64_t epoch);

/// The record of a delivery that `incoming_of` made.
inline const Record& record_of(const Incoming& incoming) { return *static_cast<const Record*>(incoming.owner.get()); }

}  // namespace kafka
TXINBOX_NAMESPACE_END
}  // namespace txinbox
