#include "backend/postgresql/refusal.hpp"

#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string_view>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

constexpr auto unreachable = "08001";

/// A server that has just refused the connection refuses it again soon. We do not wait longer.
constexpr std::chrono::seconds patience{2};

/// Returns whether the attempt has ended in time.
bool connect(PGconn* connection) {
  using Clock = std::chrono::steady_clock;
  const auto give_up = Clock::now() + patience;
  auto next = PGRES_POLLING_WRITING;
  while (next != PGRES_POLLING_OK && next != PGRES_POLLING_FAILED) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(give_up - Clock::now());
    if (left.count() <= 0) return false;
    const int events = next == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    pollfd socket{PQsocket(connection), static_cast<short>(events), 0};
    poll(&socket, 1, static_cast<int>(left.count()));
    if (socket.revents != 0) next = PQconnectPoll(connection);
  }
  return true;
}

/// The SQLSTATE in a message that consists of a severity and a SQLSTATE: "FATAL:  28P01".
std::string_view state_in(std::string_view message) {
  const auto is_of_state = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'); };
  const auto end = message.find_last_not_of(" \n");
  if (end == std::string_view::npos) return {};
  message = message.substr(0, end + 1);
  const std::string_view last = message.substr(message.find_last_of(" \n") + 1);
  return last.size() == 5 && std::ranges::all_of(last, is_of_state) ? last : std::string_view();
}

}  // namespace

std::string postgresql_state_of_refusal(const std::string& conninfo) {
  const std::unique_ptr<PGconn, decltype(&PQfinish)> connection(PQconnectStart(conninfo.c_str()), &PQfinish);
  if (!connection || PQstatus(connection.get()) == CONNECTION_BAD) return unreachable;
  PQsetErrorVerbosity(connection.get(), PQERRORS_SQLSTATE);
  if (!connect(connection.get()) || PQstatus(connection.get()) == CONNECTION_OK) return unreachable;
  if (PQconnectionNeedsPassword(connection.get()) != 0) return "28P01";
  const std::string_view state = state_in(PQerrorMessage(connection.get()));
  return std::string(state.empty() ? unreachable : state);
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
