#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/version.hpp>

namespace soci {
class session;
}

namespace txinbox::inline TXINBOX_ABI {

/// How bad a finding is.
enum class Severity {
  note,     ///< Worth knowing; nothing to do.
  warning,  ///< Consuming is correct, but something is slow, or not durable, or held for long.
  error,    ///< txinbox refuses to consume, or could not.
};

std::string_view to_string(Severity) noexcept;

/// One thing that makes a database unsafe or slow for the inbox.
struct Finding {
  Severity severity;
  std::string subject;  ///< What it is about: "sync_binlog", "txinbox_consumed_message.business_key".
  std::string found;    ///< What is there.
  std::string mend;     ///< What to do about it.
};

/// Everything that `verify` refuses, and what is not durable, can hold keys for long, or is slow.
/// Empty when all is well.
///
/// Transaction: none may be open.
/// Errors:      a database error as it was; a missing table is a finding, not an error.
std::vector<Finding> diagnose(soci::session& session);

/// What one consumer has in the table. Times are UTC, as "2026-01-31 23:59:59.123456".
struct ConsumerStatus {
  std::string consumer;
  std::int64_t consumed = 0;
  std::int64_t consuming = 0;
  std::int64_t parked = 0;  ///< Parked or torn.
  std::string oldest;       ///< `consumed_at` of the oldest row.
  std::string newest;
};

struct Status {
  std::string database;        ///< "sqlite3", "mysql" or "postgresql".
  std::string server_version;  ///< As the server gives it.
  int schema_version = 0;
  std::int64_t rows = 0;
  std::int64_t bytes = 0;                 ///< Table and indexes, as the database estimates; 0 where it cannot tell.
  std::vector<ConsumerStatus> consumers;  ///< By name.
};

/// Counts what is in the consumed-message table. Reads all of it: seconds on millions of rows.
///
/// Errors: `Error` schema_missing; a database error as it was.
Status status(soci::session& session);

/// One row of the consumed-message table. Times are UTC.
struct ConsumedMessage {
  std::string consumer;
  std::string business_key;
  std::string message_id;  ///< Empty when none was given.
  std::string state;       ///< "consumed", "consuming", "parked", "torn".
  std::string consumed_at;
  std::optional<std::string> stored;  ///< What the handler stored.
};

/// The row of one key, if there is one.
///
/// Errors: `Error` invalid_key, schema_missing; a database error as it was.
std::optional<ConsumedMessage> find(soci::session& session, std::string_view consumer, std::string_view business_key);

}  // namespace txinbox::inline TXINBOX_ABI
