#include "by_hand.hpp"

#include <soci/mysql/soci-mysql.h>
#include <soci/postgresql/soci-postgresql.h>
#include <soci/sqlite3/soci-sqlite3.h>

#include <array>
#include <cstring>
#include <initializer_list>
#include <stdexcept>

namespace txinbox::bench {
namespace {

void require(bool ok, const char* what) {
  if (!ok) throw std::runtime_error(what);
}

using namespace sqlite_api;  // NOLINT(google-build-using-namespace): SOCI 4.0 declares SQLite there

class Sqlite3ByHand final : public ByHand {
 public:
  explicit Sqlite3ByHand(sqlite3* db) : db_(db) {
    const std::array<const char*, 4> sql = {
        "BEGIN IMMEDIATE",
        "INSERT INTO txinbox_consumed_message (consumer, business_key, state, attempt_token) "
        "VALUES ('hand', ?1, 'consumed', x'00')",
        "UPDATE account SET n = n + 1 WHERE id = 1", "COMMIT"};
    for (std::size_t i = 0; i < sql.size(); ++i) {
      require(sqlite3_prepare_v2(db_, sql[i], -1, &statements_[i], nullptr) == SQLITE_OK, "prepare");
    }
  }
  ~Sqlite3ByHand() override {
    for (sqlite3_stmt* each : statements_) sqlite3_finalize(each);
  }
  void consume(const std::string& key) override {
    sqlite3_bind_text(statements_[1], 1, key.data(), static_cast<int>(key.size()), SQLITE_STATIC);
    for (sqlite3_stmt* each : statements_) {
      require(sqlite3_step(each) == SQLITE_DONE, "step");
      sqlite3_reset(each);
    }
  }

 private:
  sqlite3* db_;
  std::array<sqlite3_stmt*, 4> statements_{};
};

class MysqlByHand final : public ByHand {
 public:
  explicit MysqlByHand(MYSQL* db) : db_(db), insert_(mysql_stmt_init(db)), update_(mysql_stmt_init(db)) {
    prepare(insert_,
            "INSERT INTO txinbox_consumed_message (consumer, business_key, state, attempt_token, consumed_at) "
            "VALUES ('hand', ?, 'consumed', x'00', UTC_TIMESTAMP(6))");
    prepare(update_, "UPDATE account SET n = n + 1 WHERE id = 1");
  }
  ~MysqlByHand() override {
    mysql_stmt_close(insert_);
    mysql_stmt_close(update_);
  }
  void consume(const std::string& key) override {
    require(mysql_query(db_, "BEGIN") == 0, "BEGIN");
    MYSQL_BIND bind;
    std::memset(&bind, 0, sizeof bind);
    bind.buffer_type = MYSQL_TYPE_STRING;
    bind.buffer = const_cast<char*>(key.data());
    bind.buffer_length = static_cast<unsigned long>(key.size());
    mysql_stmt_bind_param(insert_, &bind);
    require(mysql_stmt_execute(insert_) == 0, "INSERT");
    require(mysql_stmt_execute(update_) == 0, "UPDATE");
    require(mysql_query(db_, "COMMIT") == 0, "COMMIT");
  }

 private:
  static void prepare(MYSQL_STMT* statement, const char* sql) {
    require(mysql_stmt_prepare(statement, sql, std::strlen(sql)) == 0, "prepare");
  }
  MYSQL* db_;
  MYSQL_STMT* insert_;
  MYSQL_STMT* update_;
};

class PostgresqlByHand final : public ByHand {
 public:
  explicit PostgresqlByHand(PGconn* db) : db_(db) {
    PQclear(PQprepare(db_, "hand_insert",
                      "INSERT INTO txinbox_consumed_message (consumer, business_key, state, attempt_token) "
                      "VALUES ('hand', $1, 'consumed', '00000000000000000000000000000000') ON CONFLICT DO NOTHING",
                      1, nullptr));
    PQclear(PQprepare(db_, "hand_update", "UPDATE account SET n = n + 1 WHERE id = 1", 0, nullptr));
  }
  void consume(const std::string& key) override {
    const char* values[] = {key.c_str()};
    check(PQexec(db_, "BEGIN"));
    check(PQexecPrepared(db_, "hand_insert", 1, values, nullptr, nullptr, 0));
    check(PQexecPrepared(db_, "hand_update", 0, nullptr, nullptr, nullptr, 0));
    check(PQexec(db_, "COMMIT"));
  }

 private:
  static void check(PGresult* result) {
    const bool ok = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    require(ok, "PostgreSQL");
  }
  PGconn* db_;
};

}  // namespace

std::unique_ptr<ByHand> by_hand(soci::session& sql) {
  const std::string name = sql.get_backend_name();
  if (name == "sqlite3") {
    return std::make_unique<Sqlite3ByHand>(static_cast<soci::sqlite3_session_backend*>(sql.get_backend())->conn_);
  }
  if (name == "mysql") {
    return std::make_unique<MysqlByHand>(static_cast<soci::mysql_session_backend*>(sql.get_backend())->conn_);
  }
  return std::make_unique<PostgresqlByHand>(static_cast<soci::postgresql_session_backend*>(sql.get_backend())->conn_);
}

}  // namespace txinbox::bench
