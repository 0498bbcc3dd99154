#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/inspect.hpp>

#include "admin/inbox_findings.hpp"
#include "backend/dialect.hpp"
#include "backend/query.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Reads the counts of the consumers. Each function adds the consumers that it finds.
class StatusReader {
 public:
  /// `consumer` is empty for all consumers.
  StatusReader(const backend::NativeConnection& sql, const backend::Dialect& dialect, std::string_view consumer = {})
      : sql_(sql), dialect_(dialect), consumer_(consumer) {}

  // --- These functions read the whole consumed-message table, or all rows of the consumer.

  /// Counts the rows by their state. Returns the number of all rows.
  std::int64_t read_rows(const Notes&);

  // --- These functions do not.

  void read_last_minute();

  /// Counts the messages with a counted failure by the state of their rows. A message that is still not consumed,
  /// parked, torn or discarded is failed. `Parked::counted`: it also counts the parked and torn ones.
  enum class Parked { ignored, counted };
  void read_failed(Parked = Parked::ignored);
  void read_conflicts();
  void add(const Notes&);

  /// Finds the names of all consumers that have a row in the consumed-message table. It takes one statement for each.
  void find_names();

  /// Counts the leases with the index on leases. The table must have it.
  void read_leases();

  /// Returns the numbers of messages that were consumed within this time.
  std::map<std::string, std::int64_t> consumed_within(std::chrono::seconds) const;

  std::vector<ConsumerStatus> take();

 private:
  std::vector<backend::Row> query(const std::string& text, std::size_t columns) const {
    return backend::query(sql_, text, columns);
  }
  std::string is_meant(std::string_view column) const;
  std::string to_be_purged(const Notes&) const;
  ConsumerStatus& of(const std::string& name);

  const backend::NativeConnection& sql_;
  const backend::Dialect& dialect_;
  const std::string consumer_;
  std::map<std::string, ConsumerStatus> consumers_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
