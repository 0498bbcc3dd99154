#pragma once

// What the inbox's own rows tell: for doctor and status.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <txinbox/inspect.hpp>

#include "backend/dialect.hpp"

namespace soci {
class session;
}

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// A row of txinbox_consumer.
struct ConsumerNotes {
  std::int64_t duplicates = 0;
  std::optional<std::chrono::milliseconds> oldest_duplicate = {};
  std::string oldest_duplicate_at = {};
  std::optional<std::chrono::seconds> retention = {};
  std::int64_t purged = 0;
  std::string purged_at = {};
};

/// By consumer; the empty name is for all of them.
using Notes = std::map<std::string, ConsumerNotes>;
Notes read_notes(soci::session&, const backend::Dialect&);

/// Those of one consumer; nothing is known where there are none.
ConsumerNotes notes_of(const std::string& consumer, const Notes&);

/// A row is purged by the shorter of its consumer's retention and that of all.
std::optional<std::chrono::seconds> shorter(std::optional<std::chrono::seconds>, std::optional<std::chrono::seconds>);

/// Leases that ran out, parked messages, retention that is too short or not there. The tables must be as
/// this library's migrations make them. Reads the consumed-message table as a whole, once.
std::vector<Finding> inbox_findings(soci::session&, const backend::Dialect&);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
