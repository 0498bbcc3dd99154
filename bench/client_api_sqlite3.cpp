#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>
#include <soci/version.h>

#if SOCI_VERSION >= 400100
#include <sqlite3.h>
#else
using namespace sqlite_api;  // NOLINT(google-build-using-namespace): SOCI 4.0 declares SQLite there
#endif

#include <stdexcept>

#include <fmt/format.h>

#include "client_api.hpp"

namespace txinbox::bench {
namespace {

class Statement {
 public:
  explicit Statement(const char* sql) : sql_(sql) {}
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  sqlite3_stmt* prepared(sqlite3* db) {
    if (statement_ == nullptr && sqlite3_prepare_v2(db, sql_, -1, &statement_, nullptr) != SQLITE_OK) fail(db);
    return statement_;
  }

  void run(sqlite3* db) {
    const int result = sqlite3_step(prepared(db));
    sqlite3_reset(statement_);
    if (result != SQLITE_DONE) fail(db);
  }

 private:
  [[noreturn]] void fail(sqlite3* db) const {
    throw std::runtime_error(std::string("SQLite by hand: ") + sqlite3_errmsg(db) + ": " + sql_);
  }

  const char* sql_;
  sqlite3_stmt* statement_ = nullptr;
};

class Sqlite3Api final : public ClientApi {
 public:
  explicit Sqlite3Api(sqlite3* db) : db_(db) {}

  void begin() override { begin_.run(db_); }

  bool claim(const std::string& key) override {
    sqlite3_bind_text(insert_.prepared(db_), 1, key.data(), static_cast<int>(key.size()), SQLITE_STATIC);
    insert_.run(db_);
    return sqlite3_changes(db_) == 1;
  }

  // Inserts one row at a time. On SQLite, this is faster than one statement with many rows.
  void claim_all(std::span<const Message> sorted) override {
    for (const Message& each : sorted) {
      if (!claim(each.business_key)) throw std::runtime_error("a new key was there already");
    }
  }

  void lease(const std::string& key) override { change_one(lease_, key); }
  void complete(const std::string& key) override { change_one(complete_, key); }

  void update(int row) override {
    sqlite3_bind_int(update_.prepared(db_), 1, row);
    update_.run(db_);
  }

  void update_all(std::span<const int> rows) override {
    const std::string array = fmt::format("[{}]", fmt::join(rows, ","));
    sqlite3_bind_text(update_all_.prepared(db_), 1, array.data(), static_cast<int>(array.size()), SQLITE_TRANSIENT);
    update_all_.run(db_);
  }

  void insert_outgoing(const OutgoingMessage& message) override {
    sqlite3_stmt* insert = outgoing_.prepared(db_);
    int column = 1;
    for (const std::string* text : {&message.id, &message.topic, &message.key, &message.type}) {
      sqlite3_bind_text(insert, column++, text->data(), static_cast<int>(text->size()), SQLITE_STATIC);
    }
    sqlite3_bind_blob(insert, column, message.payload.data(), static_cast<int>(message.payload.size()), SQLITE_STATIC);
    outgoing_.run(db_);
  }

  void commit() override { commit_.run(db_); }
  void roll_back() override { roll_back_.run(db_); }
  void ping() override {}

 private:
  void change_one(Statement& statement, const std::string& key) {
    sqlite3_bind_text(statement.prepared(db_), 1, key.data(), static_cast<int>(key.size()), SQLITE_STATIC);
    statement.run(db_);
    if (sqlite3_changes(db_) != 1) throw std::runtime_error("a lease was not taken, or is lost");
  }

  sqlite3* db_;
  Statement begin_{"BEGIN IMMEDIATE"};
  Statement insert_{
      "INSERT INTO txinbox_consumed_message (consumer, business_key, state, attempt_token) "
      "VALUES ('by-hand', ?1, 'consumed', zeroblob(16)) ON CONFLICT (consumer, business_key) DO NOTHING"};
  Statement lease_{
      "INSERT INTO txinbox_consumed_message (consumer, business_key, state, attempt_token, lease_owner, lease_fence, "
      "lease_expires_at) VALUES ('by-hand', ?1, 'consuming', zeroblob(16), 'me', 1, "
      "strftime('%Y-%m-%d %H:%M:%f', 'now', '+60 seconds')) ON CONFLICT (consumer, business_key) DO NOTHING"};
  Statement complete_{
      "UPDATE txinbox_consumed_message SET state = 'consumed', lease_owner = NULL, lease_expires_at = NULL, "
      "consumed_at = strftime('%Y-%m-%d %H:%M:%f', 'now') WHERE consumer = 'by-hand' AND business_key = ?1 AND "
      "state = 'consuming' AND attempt_token = zeroblob(16) AND lease_fence = 1"};
  Statement update_{"UPDATE bench_account SET n = n + 1 WHERE id = ?1"};
  Statement update_all_{"UPDATE bench_account SET n = n + 1 WHERE id IN (SELECT value FROM json_each(?1))"};
  Statement outgoing_{
      "INSERT INTO txinbox_outbox_message (id, aggregatetype, aggregateid, type, payload, part, created_at) "
      "VALUES (?1, ?2, ?3, ?4, ?5, 0, strftime('%Y-%m-%d %H:%M:%f', 'now'))"};
  Statement commit_{"COMMIT"};
  Statement roll_back_{"ROLLBACK"};
};

}  // namespace

std::unique_ptr<ClientApi> sqlite3_api(soci::session& sql) {
  auto* backend = static_cast<soci::sqlite3_session_backend*>(sql.get_backend());
  return std::make_unique<Sqlite3Api>(reinterpret_cast<sqlite3*>(backend->conn_));
}

}  // namespace txinbox::bench
