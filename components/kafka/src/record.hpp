#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <librdkafka/rdkafka.h>
#include <txinbox/source.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace kafka {

/// A record's bytes, copied: a record of librdkafka keeps the whole response of the broker that it came with.
struct Record {
  std::string bytes;  ///< Body, key, and names and values of the headers.
  std::vector<IncomingHeader> headers;
  std::string id;
  std::int64_t offset = 0;
};

/// Makes a delivery of a record. Its owner is a `Record`; its ticket is `epoch`.
Incoming incoming_of(const rd_kafka_message_t& message, std::uint64_t lane, std::uint64_t epoch);

/// The record of a delivery that `incoming_of` made.
inline const Record& record_of(const Incoming& incoming) { return *static_cast<const Record*>(incoming.owner.get()); }

}  // namespace kafka
TXINBOX_NAMESPACE_END
}  // namespace txinbox
