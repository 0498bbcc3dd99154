#pragma once

#include <libpq-fe.h>

#include <string>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// Makes libpq keep the SQLSTATE of the last error on this connection, no matter which code runs the statement. libpq
/// itself keeps only the error's text. The call needs no round trip, and may be repeated.
void keep_sqlstate(PGconn*);

/// Forgets the last error, for the next transaction.
void forget_sqlstate(const PGconn*) noexcept;

/// Returns the SQLSTATE of the last error since `keep_sqlstate`. Empty if there was no error, or if libpq does not keep
/// it.
std::string kept_sqlstate(const PGconn*);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
