#pragma once

// The facts that the rows of the inbox show, for `doctor` and `status`.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <txinbox/inspect.hpp>

#include "backend/catalog.hpp"
#include "backend/dialect.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// A row of txinbox_consumer.
struct ConsumerNotes {
  std::int64_t duplicates = 0;
  std::optional<std::chrono::milliseconds> oldest_duplicate = {};
  std::optional<DatabaseTime> oldest_duplicate_at = {};
  std::optional<std::chrono::seconds> retention = {};
  std::int64_t purged = 0;
  std::optional<DatabaseTime> purged_at = {};
};

/// The rows by consumer. The row with the empty name is about purges of all consumers.
using Notes = std::map<std::string, ConsumerNotes>;
Notes read_notes(const backend::NativeConnection&, const backend::Dialect&);

/// Returns the row of one consumer; an empty one if there is none.
ConsumerNotes notes_of(const std::string& consumer, const Notes&);

/// Returns the shorter retention. A row is purged by the retention of its consumer or of all, whichever is shorter.
std::optional<std::chrono::seconds> shorter(std::optional<std::chrono::seconds>, std::optional<std::chrono::seconds>);

/// Which tables were found besides those of the inbox.
struct OptionalTables {
  bool outbox;
  bool operations;  ///< Those of V3.
};

/// Finds expired leases, parked and torn messages, a retention that is missing or too short, consumers that are
/// paused, and messages of the outbox that nobody publishes.
///
/// It reads only the tables of the inbox and those that `has` names. `log_reader`: as `Catalog::find_log_reader`. The
/// tables must match this library's migrations. It reads the whole consumed-message table once.
std::vector<Finding> inbox_findings(const backend::NativeConnection&, const backend::Dialect&, OptionalTables has,
                                    const std::optional<backend::LogReader>& log_reader);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
