#pragma once

#include <libpq-fe.h>

#include <string>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// Makes libpq show us each result on this connection, no matter which code runs the statement. The call needs no round
/// trip, and may be repeated. Without it, the other functions find nothing.
void watch_results(PGconn*);

/// Forgets all results. Call it before a transaction begins.
void forget_results(const PGconn*) noexcept;

/// Returns the SQLSTATE of the last error since `forget_results`. Empty if there was no error. libpq itself keeps only
/// the error's text.
std::string watched_sqlstate(const PGconn*);

/// Whether a SET, RESET or DISCARD has run since `forget_results`. It does not see the function set_config.
bool watched_setting(const PGconn*) noexcept;

/// Whether SQL was committed after the end of the transaction that began after `forget_results`, as far as the results
/// show. It can be true for SQL that was rolled back later: the results do not tell a ROLLBACK from a ROLLBACK TO
/// SAVEPOINT.
bool watched_foreign_commit(const PGconn*) noexcept;

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
