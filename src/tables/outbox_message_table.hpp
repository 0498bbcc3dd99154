#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/version.hpp>

#include "backend/dialect.hpp"
#include "backend/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

inline constexpr int outbox_parts = 64;

/// Returns the part of a message: a hash of its key. Messages without a key are spread by their id.
int outbox_part(std::string_view key, std::string_view id) noexcept;

/// A message as the table has it. `headers` is a JSON object.
struct OutboxRow {
  std::int64_t seq = 0;
  std::string id = {}, topic = {}, key = {}, type = {}, payload = {}, headers = {};
  int attempts = 0;
};

/// Returns an INSERT of these rows, of which it uses the texts.
///
/// `keep_existing`: it leaves a row with the same id as it is.
std::string insert_outbox_rows(const backend::Dialect&, std::string_view table, std::span<const OutboxRow> rows,
                               bool keep_existing);

/// Inserts one row by a statement that the session keeps prepared. Returns false, and has done nothing, if it keeps
/// none.
bool try_insert_outbox_row(backend::Session&, const OutboxRow&, bool keep_existing);

/// Which rows a relay reads.
struct OutboxQuery {
  const std::set<int>& parts;
  std::int64_t after = 0;                       ///< Only rows with a greater `seq`.
  std::vector<std::string> waiting_keys = {};   ///< Not the rows of these keys,
  std::vector<std::int64_t> waiting_rows = {};  ///< and not these rows.
  std::size_t limit = 0;
};

/// Returns the statement of `OutboxMessageTable::read`.
std::string select_outbox_rows(const backend::Dialect&, std::string_view table, const OutboxQuery&);

/// The statements of a relay about messages. Each is a transaction of its own.
class OutboxMessageTable {
 public:
  explicit OutboxMessageTable(backend::Session& session);

  /// Returns rows in the order of their insertion. If `after` is not zero, it returns no row of a key that has an
  /// earlier row that can be published: that row committed late, and comes first.
  std::vector<OutboxRow> read(const OutboxQuery&) const;

  void remove(std::span<const std::int64_t> rows) const;

  /// Counts a failed attempt, and parks the message if told so.
  void record_failure(std::int64_t row, std::string_view error, bool park) const;

 private:
  backend::Session& session_;
  std::string table_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
