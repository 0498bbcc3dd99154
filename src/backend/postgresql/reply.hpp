#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <memory>

#include "base/private_api.hpp"

namespace txinbox {
TXINBOX_PRIVATE_API_BEGIN
namespace backend {

struct ClearResult {
  void operator()(PGresult* result) const noexcept { PQclear(result); }
};
using PostgresqlResult = std::unique_ptr<PGresult, ClearResult>;

/// Limits how long `next_result` waits for the server's next bytes. Otherwise it can wait for ever: libpq has a
/// time-out for connecting only, and TCP's time-outs are for a host that does not answer at all.
void limit_silence(PGconn*, std::chrono::milliseconds longest);

/// Does what PQgetResult does. If the server is silent for too long, it shuts the connection down. The result then
/// reports a lost connection, and no later call waits on this connection.
///
/// If the result begins a COPY, it also ends this COPY: otherwise PQgetResult would return the same result for ever.
PostgresqlResult next_result(PGconn*) noexcept;

/// Whether the result begins a COPY.
bool begins_copy(const PGresult*) noexcept;

/// Ends what a handler may have left open: results that it has not read, a COPY, or the pipeline mode. Afterwards, the
/// connection takes a command, or it is lost.
void end_open_commands(PGconn*) noexcept;

/// Returns how long the server was silent before this connection was shut down. Zero if it was not shut down.
std::chrono::milliseconds fatal_silence(PGconn*) noexcept;

}  // namespace backend
TXINBOX_PRIVATE_API_END
}  // namespace txinbox
