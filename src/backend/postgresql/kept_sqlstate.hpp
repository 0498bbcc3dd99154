#pragma once

#include <libpq-fe.h>

#include <string>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// Has libpq keep the SQLSTATE of the last error of each statement on this connection, whoever runs the statement.
/// libpq itself keeps only the error's text. It needs no round trip, and can be called again.
void keep_sqlstate(PGconn*);

/// Forgets the last error, for the next transaction.
void forget_sqlstate(const PGconn*) noexcept;

/// The SQLSTATE of the last error since `keep_sqlstate`. Empty if there was none, or if it is not kept.
std::string kept_sqlstate(const PGconn*);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
