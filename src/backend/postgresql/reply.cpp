#include "backend/postgresql/reply.hpp"

#include <libpq-events.h>
#include <poll.h>
#include <sys/socket.h>

#include <new>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

/// The data that libpq stores for us with a connection.
struct Silence {
  std::chrono::milliseconds longest;
  bool ended_connection = false;
};

int keep_silence(PGEventId event, void* info, void* /*unused*/) {
  if (event == PGEVT_CONNDESTROY) {
    delete static_cast<Silence*>(  // NOLINT(cppcoreguidelines-owning-memory): libpq holds it
        PQinstanceData(static_cast<PGEventConnDestroy*>(info)->conn, keep_silence));
  }
  return 1;
}

Silence* silence_of(const PGconn* connection) noexcept {
  return connection == nullptr ? nullptr : static_cast<Silence*>(PQinstanceData(connection, keep_silence));
}

/// Waits until the socket is ready. Returns false after the time-out.
bool wait_until_ready(pollfd socket, std::chrono::milliseconds longest) noexcept {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + longest;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    const int ready = poll(&socket, 1, static_cast<int>(left.count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return true;  // libpq will report what is wrong with it
  }
}

bool read_what_came(PGconn* connection) noexcept {
  // TLS may have decrypted bytes that poll does not see. One TLS record needs at most two more reads.
  const int reads = PQsslInUse(connection) != 0 ? 3 : 1;
  for (int i = 0; i < reads; ++i) {
    if (PQconsumeInput(connection) == 0) return false;
  }
  return true;
}

/// Waits until the next PQgetResult can return without waiting.
void wait_for_reply(PGconn* connection, Silence& silence) noexcept {
  while (PQstatus(connection) == CONNECTION_OK) {
    const int unsent = PQflush(connection);
    if (unsent < 0 || (unsent == 0 && PQisBusy(connection) == 0)) return;
    const int events = unsent == 0 ? POLLIN : POLLIN | POLLOUT;
    if (!wait_until_ready({PQsocket(connection), static_cast<short>(events), 0}, silence.longest)) {
      silence.ended_connection = true;
      shutdown(PQsocket(connection), SHUT_RDWR);
      return;
    }
    if (!read_what_came(connection)) return;
  }
}

}  // namespace

void limit_silence(PGconn* connection, std::chrono::milliseconds longest) {
  if (Silence* known = silence_of(connection)) {
    known->longest = longest;
    return;
  }
  auto silence = std::make_unique<Silence>(Silence{longest});
  if (PQregisterEventProc(connection, keep_silence, "txinbox", nullptr) == 0 ||
      PQsetInstanceData(connection, keep_silence, silence.get()) == 0) {
    throw std::bad_alloc();
  }
  (void)silence.release();  // NOLINT(bugprone-unused-return-value): `keep_silence` ends it
  PQsetnonblocking(connection, 1);
}

PostgresqlResult next_result(PGconn* connection) noexcept {
  if (Silence* silence = silence_of(connection)) wait_for_reply(connection, *silence);
  return PostgresqlResult(PQgetResult(connection));
}

std::chrono::milliseconds fatal_silence(PGconn* connection) noexcept {
  const Silence* silence = silence_of(connection);
  return silence != nullptr && silence->ended_connection ? silence->longest : std::chrono::milliseconds::zero();
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
