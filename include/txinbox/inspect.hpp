#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/finding.hpp>
#include <txinbox/version.hpp>

namespace soci {
class session;
}

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// Everything that `verify` refuses, and what is not durable, can hold keys for long, or is slow.
/// Empty when all is well.
///
/// Transaction: none may be open.
/// Errors:      a database error as it was; a missing table is a finding, not an error.
std::vector<Finding> diagnose(soci::session& session);

/// What is recorded of one consumer. Times are UTC, as "2026-01-31 23:59:59.123456"; empty for never.
struct ConsumerStatus {
  std::string consumer;
  std::int64_t consumed = 0;
  std::int64_t consuming = 0;  ///< Rows of a LeaseConsumer that are not consumed yet.
  std::int64_t parked = 0;     ///< Parked or torn.
  std::string oldest;          ///< `consumed_at` of the oldest row.
  std::string newest;
  std::int64_t discarded = 0;
  std::int64_t failed = 0;       ///< Messages that have failed and are neither consumed, parked nor discarded by now.
  std::int64_t conflicts = 0;    ///< Deliveries that were refused since their key had come with other content.
  std::int64_t leases_held = 0;  ///< Of `consuming`.
  std::int64_t leases_run_out = 0;  ///< Of `consuming`: the next delivery takes them over.
  std::int64_t last_minute = 0;     ///< Of `consumed`: in the last 60 seconds.

  /// Caught so far. Consumers write it every ten seconds at most, and a crash takes away what was not yet.
  std::int64_t duplicates = 0;

  /// The greatest age of an original when its duplicate came, and when that was.
  std::optional<std::chrono::milliseconds> oldest_duplicate = {};
  std::string oldest_duplicate_at = {};

  /// What the last purge kept, and how many consumed rows are older than that by now.
  std::optional<std::chrono::seconds> retention = {};
  std::int64_t purge_backlog = 0;
  std::string purged_at = {};  ///< When that was.
  std::int64_t purged = 0;     ///< Rows of this consumer that purges of it alone have removed.
};

struct Status {
  std::string database;        ///< "sqlite3", "mysql" or "postgresql".
  std::string server_version;  ///< As the server gives it.
  int schema_version = 0;
  std::int64_t rows = 0;
  std::int64_t bytes = 0;                 ///< Table and indexes, as the database estimates; 0 where it cannot tell.
  std::vector<ConsumerStatus> consumers;  ///< By name.
  std::int64_t purged = 0;                ///< Rows that purges of all consumers at once have removed.
  std::string encryption = {};  ///< Of this connection: "TLSv1.3, TLS_AES_256_GCM_SHA384"; empty without encryption.
};

/// Counts what is in the inbox's tables. Reads the consumed-message table as a whole, once, which takes
/// seconds on millions of rows (docs/operations/watching.md has figures); it blocks nobody. What a schema before
/// version 4 does not have is left at zero.
///
/// `consumer`: only what is recorded of it, `rows` included, which reads only its rows; empty: of all.
///
/// Errors: `Error` invalid_key, schema_missing; a database error as it was.
Status inbox_status(soci::session& session, std::string_view consumer = {});

/// Whether anything is recorded of a consumer of that name, in any of the tables. Otherwise it is mistyped, or has
/// consumed nothing yet.
///
/// Errors: as `status`.
bool has_consumer(soci::session& session, std::string_view consumer);

/// One row of the consumed-message table. Times are UTC.
struct ConsumedMessage {
  std::string consumer;
  std::string business_key;
  std::string message_id;  ///< Empty when none was given.
  std::string state;       ///< "consumed", "consuming", "parked", "torn", "discarded".
  std::string consumed_at;
  std::optional<std::string> stored;  ///< What the handler stored.
  std::string content_hash = {};      ///< In hexadecimal; empty for a message without content.
  std::string lease_owner = {};       ///< Of a LeaseConsumer's row; empty while nobody holds the lease.
  std::optional<std::int64_t> lease_fence = {};
  std::string lease_expires_at = {};
  std::int64_t failures = 0;    ///< Deliveries that failed, since the last retry.
  std::string last_error = {};  ///< The class of the last of them.
  std::string last_failed_at = {};
  std::int64_t conflicts = 0;  ///< Deliveries that were refused since they had other content.
};

/// The row of one key, if there is one.
///
/// Errors: `Error` invalid_key, schema_missing; a database error as it was.
std::optional<ConsumedMessage> find_message(soci::session& session, std::string_view consumer,
                                            std::string_view business_key);

/// A lease of a LeaseConsumer that nobody has ended. Times are UTC, as "2026-01-31 23:59:59.123456".
struct LeaseInfo {
  std::string consumer;
  std::string business_key;
  std::string message_id;  ///< Of the delivery that holds it; empty when none was given.
  std::string owner;       ///< The worker's host and process: "host:4711".
  std::int64_t fence = 0;
  int attempts = 0;                   ///< How many deliveries have held a lease of this key, this one included.
  std::string since;                  ///< When the holder got it. A renewal does not change it.
  std::string expires_at;             ///< Empty for a row without an end, which has run out.
  std::chrono::milliseconds held{0};  ///< Since `since`.
  std::chrono::milliseconds remaining{
      0};  ///< Until it runs out. Zero or below: it has, and the next delivery takes over.
};

/// Which leases are meant.
struct LeaseFilter {
  std::string consumer = {};  ///< Empty: of all.
  std::size_t limit = 1000;   ///< The most that are listed; 0: none is.
};

/// The leases that are held, and those that ran out and were not taken over, the one that is held longest first.
///
/// Limits: no index knows the leases. It reads the consumer's rows, or without a consumer the whole table, once, as
///         `status` does. It blocks nobody.
/// Errors: `Error` invalid_key, schema_missing; a database error as it was.
std::vector<LeaseInfo> list_leases(soci::session& session, const LeaseFilter& filter = {});

TXINBOX_NAMESPACE_END
}  // namespace txinbox
