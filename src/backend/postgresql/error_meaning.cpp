#include "backend/postgresql/error_meaning.hpp"

#include <array>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

using enum ErrorClass;

/// SQLSTATEs, then the first two characters of those that mean the same. The first entry that fits counts.
constexpr auto meanings = std::to_array<ErrorCodeMeaning<std::string_view>>({
    {"22001", {other, "a value too long for its column"}},
    {"22003", {other, "a number out of range"}},
    {"22007", {other, "a date or time of the wrong form"}},
    {"22P02", {other, "a value of the wrong form"}},
    {"23502", {other, "NULL in a NOT NULL column"}},
    {"23503", {other, "a foreign key"}},
    {"23505", {duplicate_key, "duplicate key"}},
    {"23514", {other, "a CHECK constraint"}},
    {"25006", {read_only, "the server is read-only"}},
    {"25P03", {connection_lost}},  // idle_in_transaction_session_timeout
    {"25P04", {connection_lost}},  // transaction_timeout
    // A pooler or a DEALLOCATE has removed a prepared statement. The next run prepares it again.
    {"26000", {serialization_failure}},
    {"28000", {other, "access denied"}},
    {"28P01", {other, "wrong password"}},
    {"3D000", {other, "no such database"}},
    {"40001", {serialization_failure, "serialization failure"}},
    {"40P01", {deadlock, "deadlock"}},
    {"42501", {other, "no privilege"}},
    {"42601", {other, "wrong SQL"}},
    {"42703", {other, "no such column"}},
    {"42804", {other, "a value of the wrong type"}},
    {"42883", {other, "no such function or operator"}},
    {"42P01", {environment, "no such table"}},
    {"53000", {environment, "no resources"}},
    {"53100", {environment, "the disk is full"}},
    {"53200", {environment, "no memory"}},
    {"53300", {connection_lost, "too many connections"}},
    {"53400", {environment, "a limit of the configuration"}},
    {"55P03", {lock_timeout, "lock wait timeout"}},
    {"57014", {statement_timeout, "canceled or timed out"}},
    {"57P01", {connection_lost, "the server shut the connection down"}},
    {"57P02", {connection_lost}},  // crash_shutdown
    {"57P03", {connection_lost}},  // cannot_connect_now
    {"57P04", {connection_lost, "the database was dropped"}},
    {"57P05", {connection_lost}},  // idle_session_timeout
    {"58030", {environment, "disk I/O"}},
    {"58P01", {environment, "a file is missing"}},
    {"TXI01", {commit_refused}},  // raised by the trigger of V5__guard.sql
    {"XX001", {environment, "the data is corrupt"}},
    {"XX002", {environment, "an index is corrupt"}},
    // Whole classes.
    {"08", {connection_lost, "no connection"}},
    {"53", {environment}},
    {"58", {environment, "the server's system"}},
    {"XX", {environment, "an internal error of the server"}},
});

}  // namespace

ErrorMeaning postgresql_meaning(std::string_view sqlstate) {
  const auto* const found =
      find_meaning(meanings, [sqlstate](std::string_view each) { return sqlstate.starts_with(each); });
  return found == nullptr ? ErrorMeaning() : *found;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
