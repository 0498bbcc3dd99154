#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <txinbox/version.hpp>

#include "backend/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Statements on the table of consumers, each in a transaction of its own. The first statement that has something to
/// write inserts the consumer's row.
class ConsumerTable {
 public:
  ConsumerTable(backend::Session& session, std::string_view consumer) : session_(session), consumer_(consumer) {}

  /// Adds duplicates that were caught. `age`: the greatest age of an original when its duplicate came.
  void add_duplicates(std::int64_t count, std::optional<std::chrono::milliseconds> age) const;

  /// Records a purge: its retention, and how many rows it removed. `may_insert`: whether the consumer may get a row.
  void record_purge(std::chrono::seconds retention, std::size_t removed, bool may_insert) const;

 private:
  backend::Session& session_;
  std::string_view consumer_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
