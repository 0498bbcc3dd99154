#include <soci/mysql/soci-mysql.h>
#include <soci/soci.h>

#include <mysql.h>
#include <mysqld_error.h>

#include <stdexcept>
#include <string_view>
#include <vector>

#include "client_api.hpp"

namespace txinbox::bench {
namespace {

constexpr std::string_view insert_sql =
    "INSERT INTO txinbox_consumed_message (consumer, business_key, state, attempt_token, consumed_at) VALUES ";
constexpr std::string_view values_sql =
    "('by-hand', ?, 'consumed', x'00000000000000000000000000000000', UTC_TIMESTAMP(6))";
constexpr std::string_view lease_sql =
    "INSERT INTO txinbox_consumed_message (consumer, business_key, state, attempt_token, lease_owner, lease_fence, "
    "lease_expires_at, consumed_at) VALUES ('by-hand', ?, 'consuming', x'00000000000000000000000000000000', 'me', 1, "
    "UTC_TIMESTAMP(6) + INTERVAL 60 SECOND, UTC_TIMESTAMP(6))";
constexpr std::string_view complete_sql =
    "UPDATE txinbox_consumed_message SET state = 'consumed', lease_owner = NULL, lease_expires_at = NULL, "
    "consumed_at = UTC_TIMESTAMP(6) WHERE consumer = 'by-hand' AND business_key = ? AND state = 'consuming' AND "
    "attempt_token = x'00000000000000000000000000000000' AND lease_fence = 1";
constexpr std::string_view outgoing_sql =
    "INSERT INTO txinbox_outbox_message (id, aggregatetype, aggregateid, type, payload, part, created_at) "
    "VALUES (?, ?, ?, ?, ?, 0, UTC_TIMESTAMP(6))";

class Statement {
 public:
  ~Statement() {
    if (statement_ != nullptr) mysql_stmt_close(statement_);
  }
  Statement() = default;
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  bool prepared() const { return statement_ != nullptr; }

  void prepare(MYSQL* db, std::string_view sql) {
    statement_ = mysql_stmt_init(db);
    if (mysql_stmt_prepare(statement_, sql.data(), static_cast<unsigned long>(sql.size())) != 0) fail();
  }

  /// Returns the number of the error. 0 if there is no error.
  unsigned run(std::vector<MYSQL_BIND>& binds) {
    mysql_stmt_bind_param(statement_, binds.data());
    return mysql_stmt_execute(statement_) == 0 ? 0 : mysql_stmt_errno(statement_);
  }

  unsigned long long changed() const { return mysql_stmt_affected_rows(statement_); }

  [[noreturn]] void fail() const {
    throw std::runtime_error(std::string("MySQL by hand: ") + mysql_stmt_error(statement_));
  }

 private:
  MYSQL_STMT* statement_ = nullptr;
};

MYSQL_BIND bind_text(const std::string& text) {
  MYSQL_BIND bind{};
  bind.buffer_type = MYSQL_TYPE_STRING;
  bind.buffer = const_cast<char*>(text.data());
  bind.buffer_length = static_cast<unsigned long>(text.size());
  return bind;
}

class MysqlApi final : public ClientApi {
 public:
  explicit MysqlApi(MYSQL* db) : db_(db) {}

  void begin() override { run("BEGIN"); }

  // A plain INSERT. INSERT IGNORE is 1.2 times faster for a duplicate, but it also hides other errors.
  bool claim(const std::string& key) override {
    if (!insert_.prepared()) insert_.prepare(db_, std::string(insert_sql).append(values_sql));
    binds_.assign(1, bind_text(key));
    const unsigned error = insert_.run(binds_);
    if (error != 0 && error != ER_DUP_ENTRY) insert_.fail();
    return error == 0;
  }

  void claim_all(std::span<const Message> sorted) override {
    if (sorted.size() != rows_) {
      std::string sql(insert_sql);
      for (std::size_t i = 0; i < sorted.size(); ++i) sql.append(i == 0 ? "" : ", ").append(values_sql);
      insert_all_ = std::make_unique<Statement>();
      insert_all_->prepare(db_, sql);
      rows_ = sorted.size();
    }
    binds_.clear();
    for (const Message& each : sorted) binds_.push_back(bind_text(each.business_key));
    if (insert_all_->run(binds_) != 0) insert_all_->fail();
  }

  void lease(const std::string& key) override { change_one(lease_, lease_sql, key); }
  void complete(const std::string& key) override { change_one(complete_, complete_sql, key); }

  void update(int row) override {
    if (!update_.prepared()) update_.prepare(db_, "UPDATE bench_account SET n = n + 1 WHERE id = ?");
    MYSQL_BIND bind{};
    bind.buffer_type = MYSQL_TYPE_LONG;
    bind.buffer = &row;
    binds_.assign(1, bind);
    if (update_.run(binds_) != 0) update_.fail();
  }

  void update_all(std::span<const int> rows) override {
    if (rows.size() != update_rows_) {
      std::string sql = "UPDATE bench_account SET n = n + 1 WHERE id IN (?";
      for (std::size_t i = 1; i < rows.size(); ++i) sql.append(", ?");
      update_all_ = std::make_unique<Statement>();
      update_all_->prepare(db_, sql.append(")"));
      update_rows_ = rows.size();
    }
    std::vector<int> values(rows.begin(), rows.end());
    binds_.clear();
    for (int& each : values) {
      MYSQL_BIND& bind = binds_.emplace_back();
      bind.buffer_type = MYSQL_TYPE_LONG;
      bind.buffer = &each;
    }
    if (update_all_->run(binds_) != 0) update_all_->fail();
  }

  void insert_outgoing(const OutgoingMessage& message) override {
    if (!outgoing_.prepared()) outgoing_.prepare(db_, outgoing_sql);
    binds_.clear();
    for (const std::string* text : {&message.id, &message.topic, &message.key, &message.type, &message.payload}) {
      binds_.push_back(bind_text(*text));
    }
    if (outgoing_.run(binds_) != 0) outgoing_.fail();
  }

  void commit() override { run("COMMIT"); }
  void roll_back() override { run("ROLLBACK"); }

  void ping() override {
    if (mysql_ping(db_) != 0) fail();
  }

 private:
  void change_one(Statement& statement, std::string_view sql, const std::string& key) {
    if (!statement.prepared()) statement.prepare(db_, sql);
    binds_.assign(1, bind_text(key));
    if (statement.run(binds_) != 0) statement.fail();
    if (statement.changed() != 1) throw std::runtime_error("a lease was not taken, or is lost");
  }

  void run(std::string_view sql) {
    if (mysql_real_query(db_, sql.data(), static_cast<unsigned long>(sql.size())) != 0) fail();
  }

  [[noreturn]] void fail() const { throw std::runtime_error(std::string("MySQL by hand: ") + mysql_error(db_)); }

  MYSQL* db_;
  Statement insert_;
  Statement lease_;
  Statement complete_;
  Statement update_;
  Statement outgoing_;
  std::unique_ptr<Statement> insert_all_;
  std::size_t rows_ = 0;
  std::unique_ptr<Statement> update_all_;
  std::size_t update_rows_ = 0;
  std::vector<MYSQL_BIND> binds_;
};

}  // namespace

std::unique_ptr<ClientApi> mysql_api(soci::session& sql) {
  return std::make_unique<MysqlApi>(static_cast<soci::mysql_session_backend*>(sql.get_backend())->conn_);
}

}  // namespace txinbox::bench
