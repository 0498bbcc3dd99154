#include <txinbox/outbox.hpp>

#include <memory>
#include <utility>

#include "backend/connection_access.hpp"
#include "backend/database.hpp"
#include "backend/table_check.hpp"
#include "outbox/outgoing_message.hpp"
#include "tables/outbox_scope.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

using detail::OutboxRow;

/// Inserts rows in statements of limited length. A statement contains either rows with derived ids or other rows, never
/// both.
class Insertion {
 public:
  Insertion(const backend::NativeConnection& connection, const detail::OutboxClaim* claim)
      : connection_(connection),
        claim_(claim),
        dialect_(connection.database().dialect({})),
        // Without a claim, the database finds the table by the session's search path, as it finds the caller's own
        // tables.
        table_(claim != nullptr ? claim->session().dialect().table(backend::outbox_message_table)
                                : std::string(backend::outbox_message_table)) {}

  void add(OutboxRow row, bool derived) {
    constexpr std::size_t most_rows = 500, most_bytes = 1024UL * 1024;
    if (derived != derived_ || rows_.size() == most_rows || bytes_ + row.payload.size() > most_bytes) flush();
    derived_ = derived;
    bytes_ += row.payload.size();
    rows_.push_back(std::move(row));
  }

  void flush() {
    if (rows_.empty()) return;
    const bool is_inserted =
        rows_.size() == 1 && claim_ != nullptr && detail::try_insert_outbox_row(claim_->session(), rows_[0], derived_);
    if (!is_inserted) {
      connection_.database().run(connection_, detail::insert_outbox_rows(*dialect_, table_, rows_, derived_));
    }
    rows_.clear();
    bytes_ = 0;
  }

 private:
  const backend::NativeConnection& connection_;
  const detail::OutboxClaim* const claim_;
  const std::unique_ptr<backend::Dialect> dialect_;
  const std::string table_;
  std::vector<OutboxRow> rows_;
  bool derived_ = false;
  std::size_t bytes_ = 0;
};

}  // namespace

std::vector<std::string> Outbox::add(ConnectionRef connection, std::span<const OutgoingMessage> messages) {
  std::vector<OutboxRow> rows;
  rows.reserve(messages.size());
  for (const OutgoingMessage& message : messages) rows.push_back(detail::row_of(message));

  const backend::NativeConnection& sql = *detail::ConnectionAccess::of(connection);
  const auto claim = detail::OutboxScope::on(sql.handle());
  Insertion insertion(sql, claim.get());
  std::vector<std::string> ids;
  ids.reserve(rows.size());
  for (OutboxRow& row : rows) {
    bool derived = false;
    if (row.id.empty() && claim) {
      row.id = claim->next_id();
      derived = !row.id.empty();
    }
    if (row.id.empty()) row.id = detail::random_message_id();
    ids.push_back(row.id);
    insertion.add(std::move(row), derived);
  }
  insertion.flush();
  return ids;
}

std::string Outbox::add(ConnectionRef connection, const OutgoingMessage& message) {
  return std::move(add(std::move(connection), std::span(&message, 1)).front());
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
