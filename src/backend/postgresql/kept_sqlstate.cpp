#include "backend/postgresql/kept_sqlstate.hpp"

#include <libpq-events.h>

#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

using State = std::array<char, 6>;  // five characters and NUL

/// This SQLSTATE says only that an earlier statement has failed. The wrapper of a prepared statement gets it when its
/// destructor drops the statement.
constexpr std::string_view in_failed_sql_transaction = "25P02";

int keep(PGEventId event, void* info, void* /*unused*/) {
  if (event == PGEVT_RESULTCREATE) {
    const auto* created = static_cast<PGEventResultCreate*>(info);
    const char* code = PQresultErrorField(created->result, PG_DIAG_SQLSTATE);
    auto* state = static_cast<State*>(PQinstanceData(created->conn, keep));
    if (state == nullptr || code == nullptr || code == in_failed_sql_transaction) return 1;
    std::strncpy(state->data(), code, state->size() - 1);
  } else if (event == PGEVT_CONNDESTROY) {
    delete static_cast<State*>(  // NOLINT(cppcoreguidelines-owning-memory): libpq holds it
        PQinstanceData(static_cast<PGEventConnDestroy*>(info)->conn, keep));
  }
  return 1;
}

}  // namespace

void keep_sqlstate(PGconn* connection) {
  if (connection == nullptr || PQinstanceData(connection, keep) != nullptr) return;
  auto state = std::make_unique<State>();
  if (PQregisterEventProc(connection, keep, "txinbox_sqlstate", nullptr) == 0 ||
      PQsetInstanceData(connection, keep, state.get()) == 0) {
    throw std::bad_alloc();
  }
  (void)state.release();  // NOLINT(bugprone-unused-return-value): `keep` ends it
}

void forget_sqlstate(const PGconn* connection) noexcept {
  if (auto* state = static_cast<State*>(PQinstanceData(connection, keep))) state->fill('\0');
}

std::string kept_sqlstate(const PGconn* connection) {
  const auto* state = static_cast<const State*>(PQinstanceData(connection, keep));
  return state == nullptr ? std::string() : std::string(state->data());
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
