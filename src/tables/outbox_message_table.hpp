#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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

/// Returns the part of a message: a hash of its key. For a message without a key, it is a hash of its id.
int outbox_part(std::string_view key, std::string_view id) noexcept;

/// A message as the table stores it. `headers` is a JSON object.
struct OutboxRow {
  std::int64_t seq = 0;
  std::string id = {}, topic = {}, key = {}, type = {}, payload = {}, headers = {};
  int attempts = 0;
  bool is_late = false;  ///< An earlier row of the key must be published first.
};

/// Where the id of a message comes from. It decides what an INSERT does if the table has a row with this id.
enum class IdOrigin {
  given,    ///< The caller chose the id. The INSERT fails with a duplicate key.
  random,   ///< No other row has the id.
  derived,  ///< The same claim has added the row, in a run whose claim was removed. The INSERT replaces that row.
};

/// Returns an INSERT of these rows. It uses only the text members of the rows. If `origin` is `given`, it may insert
/// fewer rows than these: the database has numbered a row with a number that another row has.
std::string insert_outbox_rows(const backend::Dialect&, std::string_view table, std::span<const OutboxRow> rows,
                               IdOrigin origin);

/// Inserts one row with a statement that the session keeps prepared. If the session cannot keep it, this function does
/// nothing and returns false. `origin` is not `given`.
bool try_insert_outbox_row(backend::Session&, const OutboxRow&, IdOrigin origin);

/// Adds the stored payload of a failed message to the outbox, in the open transaction. Returns false if no payload is
/// stored.
bool add_stored_payload(backend::Session&, std::string_view topic, std::string_view consumer,
                        std::string_view business_key, std::string_view id);

/// A row of the outbox. The number alone does not identify a row: a standby that takes over without its primary's last
/// rows gives their numbers again.
struct OutboxRowKey {
  std::int64_t seq = 0;
  std::string id = {};
};

/// An attempt to publish a message that the table must count. With `park`, the message is parked.
struct FailedAttempt {
  OutboxRowKey row;
  int attempts;  ///< How many have failed, with this one.
  std::string error;
  bool park;
};

/// The bytes of payloads after which a read ends, so that large messages do not fill the memory.
inline constexpr std::size_t most_payload_bytes = 16UL * 1024 * 1024;

/// The relay knows all rows up to this number, and no transaction can add another one while this server runs and the
/// numbers are not started over.
struct Watermark {
  std::int64_t seq = 0;
  std::int64_t server = 0;
};

/// The transactions that may have inserted rows and have not ended.
struct OutboxWriters {
  std::int64_t server = 0;  ///< The running server.
  std::vector<std::string> transactions = {};
  bool has_prepared = false;  ///< One of them is prepared. Before, it may have been listed with another name.
};

/// Which rows a relay reads. Parked rows are never read.
struct OutboxQuery {
  const std::set<int>& parts;
  std::int64_t after = 0;                   ///< Only rows with a greater `seq`.
  std::optional<std::int64_t> up_to = {};   ///< Only rows with this `seq` or a smaller one.
  std::span<const std::string> keys = {};   ///< If it is not empty: only rows of these keys.
  std::span<const std::int64_t> rows = {};  ///< If it is not empty: only those of these rows that have no key. Another
                                            ///< message can have the number by now.
  std::size_t limit = 0;                    ///< At most so many rows.
  Watermark watermark = {};                 ///< Earlier rows of a key can only be behind it.
};

/// Returns the statement of `OutboxMessageTable::read`.
std::string select_outbox_rows(const backend::Dialect&, std::string_view table, const OutboxQuery&);

/// The statements of a relay about messages. Each is a transaction of its own, except where it says otherwise.
class OutboxMessageTable {
 public:
  explicit OutboxMessageTable(backend::Session& session);

  /// Returns rows in the order of their insertion. If the key of a row has a row that is not after `after`, that row
  /// must be published first. Then it sets `OutboxRow::is_late`, and reads neither payload nor headers. Ends with the
  /// row whose payload reaches `most_payload_bytes`.
  std::vector<OutboxRow> read(const OutboxQuery&) const;

  /// Returns the numbers, ids and keys of rows, in the order of their insertion. It does not look for earlier rows.
  std::vector<OutboxRow> list(const OutboxQuery&) const;

  /// Returns the transactions that can still add a row with a smaller number than a row that was read before. None if
  /// the database cannot tell.
  std::optional<OutboxWriters> writers() const;

  void remove(std::span<const OutboxRowKey> rows) const;

  /// In the open transaction, removes the row if it meets the condition, which is SQL. Returns whether the row was
  /// removed.
  bool remove_if(const OutboxRowKey& row, std::string_view condition) const;

  /// In the open transaction, makes a parked message wait again, so that the relay publishes it. Returns false if the
  /// message is not parked.
  bool retry(const OutboxRowKey& row) const;

  /// Counts these attempts, in one statement. No two are of the same row. If the reply is lost, call it again: an
  /// attempt counts once.
  void record_failures(std::span<const FailedAttempt>) const;

 private:
  backend::Session& session_;
  std::string table_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
