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

/// As a lost connection: no later call waits on it, and the server rolls back.
void shut_down(PGconn* connection) noexcept { shutdown(PQsocket(connection), SHUT_RDWR); }

/// Waits until the socket is ready. Gives the connection up after the longest silence, or after a minute if no silence
/// is limited.
bool wait_for_socket(PGconn* connection, Silence* silence, int events) noexcept {
  constexpr std::chrono::milliseconds of_other_connections = std::chrono::minutes(1);
  const auto longest = silence != nullptr ? silence->longest : of_other_connections;
  if (wait_until_ready({PQsocket(connection), static_cast<short>(events), 0}, longest)) return true;
  if (silence != nullptr) silence->ended_connection = true;
  shut_down(connection);
  return false;
}

/// Waits until the next PQgetResult can return without waiting.
void wait_for_reply(PGconn* connection, Silence& silence) noexcept {
  while (PQstatus(connection) == CONNECTION_OK) {
    const int unsent = PQflush(connection);
    if (unsent < 0 || (unsent == 0 && PQisBusy(connection) == 0)) return;
    if (!wait_for_socket(connection, &silence, unsent == 0 ? POLLIN : POLLIN | POLLOUT)) return;
    if (!read_what_came(connection)) return;
  }
}

/// Ends a COPY from the client with an error, so that the server aborts it.
bool end_copy_in(PGconn* connection) noexcept {
  int sent = 0;
  while ((sent = PQputCopyEnd(connection, "the handler has left it open")) == 0) {  // libpq's buffer is full
    if (!wait_for_socket(connection, silence_of(connection), POLLIN | POLLOUT) || PQflush(connection) < 0) return false;
  }
  return sent > 0;
}

/// Reads the rest of a COPY to the client, if it is short.
bool end_copy_out(PGconn* connection) noexcept {
  constexpr int most_bytes = 1 << 20;
  for (int bytes = 0; bytes < most_bytes;) {
    char* row = nullptr;
    const int size = PQgetCopyData(connection, &row, 1);
    PQfreemem(row);
    if (size < 0) return true;  // the end, or an error: the next result says which
    bytes += size;
    if (size == 0 && (!wait_for_socket(connection, silence_of(connection), POLLIN) || !read_what_came(connection))) {
      return false;
    }
  }
  return false;
}

bool end_copy(PGconn* connection, ExecStatusType status) noexcept {
  if (status == PGRES_COPY_IN) return end_copy_in(connection);
  return status == PGRES_COPY_OUT && end_copy_out(connection);
}

/// Reads all results of a pipeline, and leaves it. The server answers the last commands only after a sync.
void leave_pipeline(PGconn* connection) noexcept {
  constexpr int enough = 3;  // a null stands between the results of two commands
  PQpipelineSync(connection);
  for (int nulls = 0; PQstatus(connection) == CONNECTION_OK && PQexitPipelineMode(connection) == 0;) {
    nulls = next_result(connection) ? 0 : nulls + 1;
    if (nulls < enough) continue;
    shut_down(connection);
    return;
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
  PostgresqlResult result(PQgetResult(connection));
  if (begins_copy(result.get()) && !end_copy(connection, PQresultStatus(result.get()))) shut_down(connection);
  return result;
}

bool begins_copy(const PGresult* result) noexcept {
  const ExecStatusType status = PQresultStatus(result);
  return status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH;
}

void end_open_commands(PGconn* connection) noexcept {
  if (PQpipelineStatus(connection) != PQ_PIPELINE_OFF) leave_pipeline(connection);
  while (const PostgresqlResult unread = next_result(connection)) {
  }
}

std::chrono::milliseconds fatal_silence(PGconn* connection) noexcept {
  const Silence* silence = silence_of(connection);
  return silence != nullptr && silence->ended_connection ? silence->longest : std::chrono::milliseconds::zero();
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
