#include "backend/postgresql/result_watch.hpp"

#include <libpq-events.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

/// This SQLSTATE says only that an earlier statement has failed. The wrapper of a prepared statement gets it when its
/// destructor drops the statement.
constexpr std::string_view in_failed_sql_transaction = "25P02";

/// The trigger of V1__inbox.sql has refused a COMMIT, and so the server has rolled back.
constexpr std::string_view refused_commit_state = "TXI01";

template <std::size_t N>
bool begins_with_one_of(const std::array<std::string_view, N>& words, std::string_view tag) noexcept {
  return std::ranges::any_of(words, [tag](std::string_view word) { return tag.starts_with(word); });
}

/// The facts that the results of a connection have shown since `forget_results`.
class Watched {
 public:
  void take(const PGresult* result) noexcept {
    if (const char* code = PQresultErrorField(result, PG_DIAG_SQLSTATE)) {
      take_error(code);
    } else {
      const char* tag = PQcmdStatus(const_cast<PGresult*>(result));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
      if (ended_ || may_end_or_set(*tag)) take_tag(tag);
    }
  }

  const char* sqlstate() const noexcept { return sqlstate_.data(); }
  bool has_set() const noexcept { return has_set_; }
  bool foreign_commit() const noexcept { return foreign_commit_; }

 private:
  void take_error(const char* code) noexcept {
    if (code == refused_commit_state) ended_ = true;
    if (code != in_failed_sql_transaction) std::strncpy(sqlstate_.data(), code, sqlstate_.size() - 1);
  }

  /// Whether a tag with this first letter may be COMMIT, PREPARE TRANSACTION, ROLLBACK, SET, RESET or DISCARD. Each
  /// delivery has several results, and the tags of most begin with another letter.
  static constexpr bool may_end_or_set(char first) noexcept {
    return first == 'C' || first == 'P' || first == 'R' || first == 'S' || first == 'D';
  }

  /// The tag of a command is its name, such as "INSERT 0 1". In a pool, the session is read-only outside our
  /// transactions. So a handler commits something only in a transaction of its own, or after it has changed settings.
  void take_tag(std::string_view tag) noexcept {
    static constexpr std::array<std::string_view, 3> settings = {"SET", "RESET", "DISCARD"};
    static constexpr std::array<std::string_view, 11> writes = {
        "INSERT", "UPDATE", "DELETE", "MERGE", "COPY", "CREATE", "ALTER", "DROP", "TRUNCATE", "CALL", "DO"};
    if (tag == "COMMIT" || tag == "PREPARE TRANSACTION") {
      foreign_commit_ = foreign_commit_ || (ended_ && wrote_);
      ended_ = true;
      wrote_ = false;
    } else if (tag == "ROLLBACK") {
      ended_ = true;
      wrote_ = false;
    } else if (begins_with_one_of(settings, tag)) {
      has_set_ = true;
      has_set_at_end_ = ended_;
    } else if (ended_ && begins_with_one_of(writes, tag)) {
      wrote_ = true;
      foreign_commit_ = foreign_commit_ || has_set_at_end_;
    }
  }

  std::array<char, 6> sqlstate_{};  ///< Five characters and NUL.
  bool ended_ = false;              ///< A ROLLBACK or COMMIT may have ended our transaction.
  bool has_set_ = false;            ///< Settings were changed.
  bool has_set_at_end_ = false;     ///< Settings were changed after that end.
  bool wrote_ = false;              ///< SQL was written after that.
  bool foreign_commit_ = false;
};

int watch(PGEventId event, void* info, void* unused);

/// Returns null if the connection is not watched.
Watched* watched_on(const PGconn* connection) noexcept {
  return static_cast<Watched*>(PQinstanceData(connection, watch));
}

int watch(PGEventId event, void* info, void* /*unused*/) {
  if (event == PGEVT_RESULTCREATE) {
    const auto* created = static_cast<PGEventResultCreate*>(info);
    if (Watched* watched = watched_on(created->conn)) watched->take(created->result);
  } else if (event == PGEVT_CONNDESTROY) {
    delete watched_on(
        static_cast<PGEventConnDestroy*>(info)->conn);  // NOLINT(cppcoreguidelines-owning-memory): libpq's
  }
  return 1;
}

}  // namespace

void watch_results(PGconn* connection) {
  if (connection == nullptr || watched_on(connection) != nullptr) return;
  auto watched = std::make_unique<Watched>();
  if (PQregisterEventProc(connection, watch, "txinbox_results", nullptr) == 0 ||
      PQsetInstanceData(connection, watch, watched.get()) == 0) {
    throw std::bad_alloc();
  }
  (void)watched.release();  // NOLINT(bugprone-unused-return-value): `watch` ends it
}

void forget_results(const PGconn* connection) noexcept {
  if (Watched* watched = watched_on(connection)) *watched = {};
}

std::string watched_sqlstate(const PGconn* connection) {
  const Watched* watched = watched_on(connection);
  return watched == nullptr ? std::string() : std::string(watched->sqlstate());
}

bool watched_setting(const PGconn* connection) noexcept {
  const Watched* watched = watched_on(connection);
  return watched != nullptr && watched->has_set();
}

bool watched_foreign_commit(const PGconn* connection) noexcept {
  const Watched* watched = watched_on(connection);
  return watched != nullptr && watched->foreign_commit();
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
