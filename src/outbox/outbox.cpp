#include <txinbox/outbox.hpp>

#include <cstddef>
#include <memory>
#include <utility>

#include <txinbox/error.hpp>

#include "backend/connection_access.hpp"
#include "backend/database.hpp"
#include "backend/database_error.hpp"
#include "backend/table_check.hpp"
#include "outbox/outgoing_message.hpp"
#include "tables/outbox_scope.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

using detail::IdOrigin;
using detail::OutboxRow;

/// The sequence of the table gives numbers that rows have already. The transaction must be rolled back, so that the
/// message is delivered again. It is not the cause.
[[noreturn]] void throw_sequence_behind() {
  throw Error(
      ErrorCode::schema_mismatch,
      "the sequence of txinbox_outbox_message.seq is behind the rows of the table; `txinbox doctor` says how to "
      "set it");
}

/// Inserts rows in statements of limited length. The ids of the rows of one statement have one origin.
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

  void add(OutboxRow row, IdOrigin origin) {
    constexpr std::size_t most_rows = 500, most_bytes = 1024UL * 1024;
    const std::size_t bytes = row.payload.size() + row.headers.size();
    if (origin != origin_ || rows_.size() == most_rows || bytes_ + bytes > most_bytes) flush();
    origin_ = origin;
    bytes_ += bytes;
    rows_.push_back(std::move(row));
  }

  void flush() {
    if (rows_.empty()) return;
    try {
      insert();
    } catch (const DatabaseError&) {
      // Only an id of the caller's can be there already. With any other id, the conflict is about the number.
      const bool is_duplicate = backend::current_database_error()->error_class() == backend::ErrorClass::duplicate_key;
      if (origin_ == IdOrigin::given || !is_duplicate) throw;
      throw_sequence_behind();
    }
    rows_.clear();
    bytes_ = 0;
  }

 private:
  void insert() const {
    const bool may_keep = rows_.size() == 1 && claim_ != nullptr && origin_ != IdOrigin::given;
    if (may_keep && detail::try_insert_outbox_row(claim_->session(), rows_[0], origin_)) return;
    const std::size_t inserted =
        connection_.database().run(connection_, detail::insert_outbox_rows(*dialect_, table_, rows_, origin_));
    if (origin_ == IdOrigin::given && inserted < rows_.size()) throw_sequence_behind();
  }

  const backend::NativeConnection& connection_;
  const detail::OutboxClaim* const claim_;
  const std::unique_ptr<backend::Dialect> dialect_;
  const std::string table_;
  std::vector<OutboxRow> rows_;
  IdOrigin origin_ = IdOrigin::random;
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
  for (std::size_t i = 0; i < rows.size(); ++i) {
    OutboxRow& row = rows[i];
    IdOrigin origin = row.id.empty() ? IdOrigin::random : IdOrigin::given;
    if (row.id.empty() && claim) {
      row.id = claim->next_id();
      if (!row.id.empty()) origin = IdOrigin::derived;
    }
    if (row.id.empty()) row.id = detail::random_message_id();
    detail::add_handler_headers(messages[i], row);
    ids.push_back(row.id);
    insertion.add(std::move(row), origin);
  }
  insertion.flush();
  return ids;
}

std::string Outbox::add(ConnectionRef connection, const OutgoingMessage& message) {
  return std::move(add(std::move(connection), std::span(&message, 1)).front());
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
