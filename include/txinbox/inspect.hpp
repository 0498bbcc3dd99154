#pragma once

/// @file
/// For operators: examines the database, and shows the content of the tables.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/connection_ref.hpp>
#include <txinbox/finding.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

/// Examines the database, the session and the tables, and lists what an operator should know, errors first.
///
/// It finds everything that `verify` refuses. It also finds what is not durable, what can hold keys for long, what is
/// slow, a connection without encryption, messages that need an operator (parked, torn, with an expired lease), and a
/// retention that is too short. The list is empty if there is nothing to report.
///
/// @transaction none may be open.
/// @errors      `Error` transaction_open; a database error as it was. A missing table is a finding, not an error.
std::vector<Finding> diagnose(ConnectionRef connection);

/// The content of the tables for one consumer. A time that is none means never.
struct ConsumerStatus {
  std::string consumer;                ///< The consumer's name.
  std::int64_t consumed = 0;           ///< Rows in state consumed.
  std::int64_t consuming = 0;          ///< Rows of a `LeaseConsumer` that are not consumed yet.
  std::int64_t parked = 0;             ///< Rows in state parked or torn.
  std::optional<DatabaseTime> oldest;  ///< The least `consumed_at` of its rows, in any state.
  std::optional<DatabaseTime> newest;  ///< The greatest `consumed_at` of its rows, in any state.
  std::int64_t discarded = 0;          ///< Rows in state discarded.
  std::int64_t failed = 0;             ///< Messages that failed and are still not consumed, parked, torn or discarded.
  std::int64_t conflicts = 0;          ///< Deliveries that were refused because their key had come with other content.
  std::int64_t leases_held = 0;        ///< Part of `consuming`: leases that have not expired.
  std::int64_t expired_leases = 0;     ///< Part of `consuming`: leases that expired. The next delivery takes them over.
  std::int64_t last_minute = 0;        ///< Part of `consumed`: rows of the last 60 seconds.

  /// How many duplicates came. A consumer counts them in memory. It writes the count with a duplicate that comes ten
  /// seconds or more after the last write. A crash loses what was not written.
  std::int64_t duplicates = 0;

  /// The greatest age of an original when its duplicate came.
  std::optional<std::chrono::milliseconds> oldest_duplicate = {};
  std::optional<DatabaseTime> oldest_duplicate_at = {};  ///< When that duplicate came.

  /// For how long the last purge kept rows. If both a purge of this consumer and a purge of all consumers ran, it is
  /// the shorter time.
  std::optional<std::chrono::seconds> retention = {};
  std::int64_t purge_backlog = 0;              ///< Consumed rows that are now older than `retention`.
  std::optional<DatabaseTime> purged_at = {};  ///< When the last purge ran, of this consumer or of all consumers.
  std::int64_t purged = 0;                     ///< Rows that purges of this consumer alone have removed.
};

/// The result of `inbox_status`.
struct InboxStatus {
  std::string database;        ///< "sqlite3", "mysql" or "postgresql".
  std::string server_version;  ///< As the server reports it.
  int schema_version = 0;      ///< The version of the last migration that was applied.
  std::int64_t rows = 0;       ///< All rows of the consumed-message table, or those of the consumer that was asked for.
  std::int64_t bytes = 0;  ///< The size of the whole consumed-message table with its indexes, as the database estimates
                           ///< it; 0 if it cannot.
  std::vector<ConsumerStatus> consumers;  ///< Sorted by name.
  std::int64_t purged = 0;                ///< Rows that purges of all consumers have removed.

  /// How this connection is encrypted, such as "TLSv1.3, TLS_AES_256_GCM_SHA384"; empty if it is not.
  std::string encryption = {};
};

/// Counts the rows of the inbox's tables.
///
/// @param connection any connection to the database of the inbox.
/// @param consumer count only this consumer, and read only its rows. Empty: count all consumers.
///
/// @blocking without `consumer` it reads the whole consumed-message table once. This takes seconds on millions of rows
///           (docs/operations/watching.md has figures). Consumers do not wait for it.
/// @errors   `Error` invalid_key, schema_missing; a database error as it was.
InboxStatus inbox_status(ConnectionRef connection, std::string_view consumer = {});

/// The counts of one consumer that `quick_status` finds. A time that is none means never.
struct QuickConsumerStatus {
  std::string consumer;        ///< The consumer's name.
  std::int64_t failed = 0;     ///< As `ConsumerStatus::failed`.
  std::int64_t parked = 0;     ///< Rows in state parked or torn whose failure was counted. `inbox_status` counts all.
  std::int64_t conflicts = 0;  ///< As `ConsumerStatus::conflicts`.
  std::optional<std::int64_t> leases_held = {};     ///< Leases that have not expired. None before the migration V4.
  std::optional<std::int64_t> expired_leases = {};  ///< Leases that expired. None before the migration V4.

  /// Messages that were consumed in the last 10 seconds.
  std::int64_t last_ten_seconds = 0;

  std::int64_t duplicates = 0;  ///< As `ConsumerStatus::duplicates`.

  /// The greatest age of an original when its duplicate came.
  std::optional<std::chrono::milliseconds> oldest_duplicate = {};
  std::optional<DatabaseTime> oldest_duplicate_at = {};  ///< When that duplicate came.

  /// As `ConsumerStatus::retention`.
  std::optional<std::chrono::seconds> retention = {};
  std::optional<DatabaseTime> purged_at = {};  ///< As `ConsumerStatus::purged_at`.
  std::int64_t purged = 0;                     ///< As `ConsumerStatus::purged`.
  bool paused = false;                         ///< Whether the consumer is paused now. `list_pauses` says why.
};

/// The result of `quick_status`.
struct QuickStatus {
  std::string database;        ///< "sqlite3", "mysql" or "postgresql".
  std::string server_version;  ///< As the server reports it.
  int schema_version = 0;      ///< The version of the last migration that was applied.

  /// An estimate of the rows of the consumed-message table, from the database's statistics. It can be old, and wrong by
  /// half. None if the database has no statistics: on SQLite and PostgreSQL, before the first ANALYZE.
  std::optional<std::int64_t> estimated_rows = {};

  /// An estimate of the size of that table with its indexes. None on SQLite.
  std::optional<std::int64_t> estimated_bytes = {};

  std::vector<QuickConsumerStatus> consumers = {};  ///< Sorted by name.
  std::int64_t purged = 0;                          ///< Rows that purges of all consumers have removed.

  /// When the oldest message of the outbox that waits or fails was added. None if there is none, or if this user may
  /// not read the outbox.
  std::optional<DatabaseTime> outbox_oldest = {};
  std::chrono::milliseconds outbox_oldest_age{0};  ///< The age of that message.
};

/// Counts what needs an operator's attention, and is quick on tables of any size. A page can call it every few seconds.
///
/// It counts the rows of the tables that stay small: failed messages, conflicts, leases and pauses. Of the
/// consumed-message table it reads only the leases, the rows of the last 10 seconds, the rows of failed messages, and
/// one row of each consumer. So it has no number of all consumed rows for each consumer; `inbox_status` has it.
///
/// @param connection any connection to the database of the inbox.
///
/// @transaction none may be open.
/// @blocking    it takes about a dozen statements, and one for each consumer. Its time grows with the number of failed
///              messages, of conflicts and of messages in the last 10 seconds, and with the parked messages at the
///              beginning of the outbox. Consumers do not wait for it.
/// @errors      `Error` transaction_open, schema_missing; a database error as it was. Tables of the outbox and of the
///              pauses that are missing, or that this user may not read, count as empty.
QuickStatus quick_status(ConnectionRef connection);

/// Whether any of the tables has a row of this consumer. If none has, the name is wrong, or the consumer has not
/// consumed anything yet.
///
/// @errors as `inbox_status`.
bool has_consumer(ConnectionRef connection, std::string_view consumer);

/// One row of the consumed-message table, with what the other tables hold for its key.
struct ConsumedMessage {
  std::string consumer;                     ///< The consumer's name.
  std::string business_key;                 ///< See `Message::business_key`.
  std::string message_id;                   ///< The broker's id; empty if none was given.
  std::string state;                        ///< "consumed", "consuming", "parked", "torn", "discarded".
  std::optional<DatabaseTime> consumed_at;  ///< When the message was consumed. In other states: when the row was
                                            ///< inserted, got its last lease, or was parked.
  std::optional<std::string> stored;        ///< The result that the handler stored.
  std::string content_hash = {};            ///< SHA-256 in hexadecimal; empty for a message without content.
  std::string lease_owner = {};  ///< For a row of a `LeaseConsumer`; empty if the lease was released or completed.
  std::optional<std::int64_t> lease_fence = {};       ///< The fence of the last lease; none if there was no lease.
  std::optional<DatabaseTime> lease_expires_at = {};  ///< The end of the lease; none if the row has no lease.
  std::int64_t failures = 0;                          ///< Deliveries that failed since the last retry.
  std::string last_error = {};                        ///< The class of the last failure.
  std::optional<DatabaseTime> last_failed_at = {};    ///< When it failed last; none if no failure is known.
  std::int64_t conflicts = 0;                         ///< Deliveries that were refused because they had other content.
};

/// Returns the row of one key. None if the key has no row.
///
/// @errors `Error` invalid_key, schema_missing; a database error as it was.
std::optional<ConsumedMessage> find_message(ConnectionRef connection, std::string_view consumer,
                                            std::string_view business_key);

/// A lease of a `LeaseConsumer` that was neither released nor completed.
struct LeaseInfo {
  std::string consumer;               ///< The consumer's name.
  std::string business_key;           ///< The key that is leased.
  std::string message_id;             ///< The broker's id of the delivery that got the lease; empty if none was given.
  std::string owner;                  ///< The worker's host and process: "host:4711".
  std::int64_t fence = 0;             ///< See `Lease::fence`.
  int attempts = 0;                   ///< How many deliveries have held a lease of this key, this one included.
  std::optional<DatabaseTime> since;  ///< When the owner got the lease. A renewal does not change it.
  std::optional<DatabaseTime> expires_at;  ///< None if the row has no end. Such a lease has expired.
  std::chrono::milliseconds held{0};       ///< The time since `since`.
  std::chrono::milliseconds remaining{
      0};                   ///< The time until it expires. If it is zero or less, the next delivery takes over.
  std::string cursor = {};  ///< The place of the row in the list, for `LeaseFilter::after`. It contains the key.
};

/// Which leases to list.
struct LeaseFilter {
  std::string consumer = {};  ///< Empty: all consumers.
  std::size_t limit = 1000;   ///< At most this many are listed; 0: none.

  /// The `cursor` of the last row of the page before: the list goes on behind it. Empty: it begins with its first row.
  std::string after = {};
};

/// Lists the leases that are held, and the leases that expired and were not taken over. The oldest lease is first.
///
/// @blocking before the migration V4, no index covers the leases. Then it reads all rows of the consumer once, or the
///           whole table if no consumer is given. Consumers do not wait for it.
/// @errors   `Error` invalid_key, invalid_argument for `after`, schema_missing; a database error as it was.
std::vector<LeaseInfo> list_leases(ConnectionRef connection, const LeaseFilter& filter = {});

/// A content that came for a key whose row has another content (`Outcome::conflict`). Only the hashes of the contents
/// are stored.
struct ConflictingContent {
  std::string consumer;                  ///< The consumer's name.
  std::string business_key;              ///< The key of both messages.
  std::string message_id;                ///< The broker's id of the latest delivery with this content; may be empty.
  std::string original_message_id;       ///< The broker's id of the message that has the row; may be empty.
  std::string content_hash;              ///< SHA-256 of this content, in hexadecimal.
  std::string original_hash;             ///< SHA-256 of the content that the row had.
  std::string state;                     ///< The state of the row when this content came first: "consumed", "parked".
  std::int64_t deliveries = 0;           ///< How many deliveries had this content.
  std::optional<DatabaseTime> first_at;  ///< When the first of them came.
  std::optional<DatabaseTime> last_at;   ///< When the latest of them came.
  std::chrono::seconds age{0};           ///< The time since the latest one.
  std::string cursor = {};  ///< The place of the row in the list, for `ConflictFilter::after`. It contains the key.
};

/// Which conflicts to list.
struct ConflictFilter {
  std::string consumer = {};      ///< Empty: all consumers.
  std::string business_key = {};  ///< Empty: all keys.
  std::size_t limit = 1000;       ///< At most this many are listed; 0: none.

  /// The `cursor` of the last row of the page before: the list goes on behind it. Empty: it begins with its first row.
  std::string after = {};
};

/// Lists the contents that were refused because their key was known with another content. The latest one is first. A
/// key has at most `ConsumerOptions::max_conflicts` of them.
///
/// A content that comes again between two pages moves to the beginning of the list.
///
/// @errors `Error` invalid_key, invalid_argument for `after`, schema_missing; a database error as it was.
std::vector<ConflictingContent> list_conflicts(ConnectionRef connection, const ConflictFilter& filter = {});

TXINBOX_API_END
}  // namespace txinbox
