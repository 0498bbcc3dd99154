#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <memory>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

struct ClearResult {
  void operator()(PGresult* result) const noexcept { PQclear(result); }
};
using PostgresqlResult = std::unique_ptr<PGresult, ClearResult>;

/// Bounds how long `next_result` waits for the server's next bytes. Without it, a wait has no bound: libpq knows a
/// time-out for connecting only, and TCP's own are for a host that does not answer at all.
void limit_silence(PGconn*, std::chrono::milliseconds longest);

/// As PQgetResult. When the server has been silent for too long, the connection is shut down: the result says that it
/// is lost, and nothing waits on it again.
PostgresqlResult next_result(PGconn*) noexcept;

/// The silence that ended this connection; zero when something else did.
std::chrono::milliseconds fatal_silence(PGconn*) noexcept;

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
