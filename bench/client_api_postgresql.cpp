#include <soci/postgresql/soci-postgresql.h>
#include <soci/soci.h>

#include <libpq-fe.h>

#include <array>
#include <atomic>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

#include "client_api.hpp"

namespace txinbox::bench {
namespace {

constexpr auto begin_sql = "BEGIN";
constexpr auto insert_sql =
    "INSERT INTO txinbox_consumed_message (consumer, business_key, state, attempt_token) "
    "VALUES ('by-hand', $1, 'consumed', '00000000000000000000000000000000') ON CONFLICT DO NOTHING";
// This statement has one parameter for any number of rows.
constexpr auto insert_all_sql =
    "INSERT INTO txinbox_consumed_message (consumer, business_key, state, attempt_token) "
    "SELECT 'by-hand', key, 'consumed', '00000000000000000000000000000000' FROM unnest($1::text[]) AS key "
    "ON CONFLICT DO NOTHING";
constexpr auto lease_sql =
    "INSERT INTO txinbox_consumed_message (consumer, business_key, state, attempt_token, lease_owner, lease_fence, "
    "lease_expires_at) VALUES ('by-hand', $1, 'consuming', '00000000000000000000000000000000', 'me', 1, "
    "clock_timestamp() + interval '60 seconds') ON CONFLICT DO NOTHING";
constexpr auto complete_sql =
    "UPDATE txinbox_consumed_message SET state = 'consumed', lease_owner = NULL, lease_expires_at = NULL, "
    "consumed_at = clock_timestamp() WHERE consumer = 'by-hand' AND business_key = $1 AND state = 'consuming' AND "
    "attempt_token = '00000000000000000000000000000000' AND lease_fence = 1";
constexpr auto update_sql = "UPDATE bench_account SET n = n + 1 WHERE id = $1";
constexpr auto update_all_sql = "UPDATE bench_account SET n = n + 1 WHERE id = ANY ($1::int[])";
// The payload has no backslashes, so its text form as bytea is the payload itself.
constexpr auto outgoing_sql =
    "INSERT INTO txinbox_outbox_message (id, aggregatetype, aggregateid, type, payload, part, created_at) "
    "VALUES ($1, $2, $3, $4, $5, 0, clock_timestamp())";

class PostgresqlApi final : public ClientApi {
 public:
  explicit PostgresqlApi(PGconn* db) : db_(db) {}

  ~PostgresqlApi() override {
    if (PQtransactionStatus(db_) != PQTRANS_IDLE && PQtransactionStatus(db_) != PQTRANS_INTRANS) return;
    for (const std::string* name : {&insert_, &insert_all_, &lease_, &complete_, &update_, &update_all_, &outgoing_}) {
      if (!name->empty()) PQclear(PQexec(db_, ("DEALLOCATE " + *name).c_str()));
    }
  }

  void begin() override { finish(PQexec(db_, begin_sql)); }

  bool claim(const std::string& key) override { return run(insert_, insert_sql, std::array{key.c_str()}) == "1"; }

  void claim_all(std::span<const Message> sorted) override {
    // The keys of the benchmark contain no quotes and no backslashes.
    keys_.assign("{");
    for (const Message& each : sorted) {
      if (keys_.size() > 1) keys_ += ',';
      keys_.append("\"").append(each.business_key).append("\"");
    }
    keys_ += '}';
    if (run(insert_all_, insert_all_sql, std::array{keys_.c_str()}) != std::to_string(sorted.size())) {
      throw std::runtime_error("a new key was there already");
    }
  }

  void lease(const std::string& key) override { change_one(lease_, lease_sql, key); }
  void complete(const std::string& key) override { change_one(complete_, complete_sql, key); }

  void update(int row) override {
    const std::string id = std::to_string(row);
    run(update_, update_sql, std::array{id.c_str()});
  }

  void update_all(std::span<const int> rows) override {
    const std::string ids = fmt::format("{{{}}}", fmt::join(rows, ","));
    run(update_all_, update_all_sql, std::array{ids.c_str()});
  }

  void insert_outgoing(const OutgoingMessage& message) override {
    run(outgoing_, outgoing_sql,
        std::array{message.id.c_str(), message.topic.c_str(), message.key.c_str(), message.type.c_str(),
                   message.payload.c_str()});
  }

  void commit() override { finish(PQexec(db_, "COMMIT")); }
  void roll_back() override { finish(PQexec(db_, "ROLLBACK")); }

  void ping() override {
    PGresult* result = PQexec(db_, "");
    const bool ok = PQresultStatus(result) == PGRES_EMPTY_QUERY;
    PQclear(result);
    if (!ok) fail();
  }

 private:
  void change_one(std::string& name, const char* sql, const std::string& key) {
    if (run(name, sql, std::array{key.c_str()}) != "1") throw std::runtime_error("a lease was not taken, or is lost");
  }

  /// Runs a prepared statement. Returns how many rows it changed.
  template <std::size_t N>
  std::string run(std::string& name, const char* sql, const std::array<const char*, N>& parameters) {
    if (name.empty()) {
      name = next_name();
      finish(PQprepare(db_, name.c_str(), sql, N, nullptr));
    }
    return finish(PQexecPrepared(db_, name.c_str(), N, parameters.data(), nullptr, nullptr, 0));
  }

  static std::string next_name() {
    static std::atomic<unsigned> next{0};
    return "bench_" + std::to_string(next++);
  }

  std::string finish(PGresult* result) const {
    const bool ok = PQresultStatus(result) == PGRES_COMMAND_OK;
    std::string changed = PQcmdTuples(result);
    PQclear(result);
    if (!ok) fail();
    return changed;
  }

  [[noreturn]] void fail() const {
    throw std::runtime_error(std::string("PostgreSQL by hand: ") + PQerrorMessage(db_));
  }

  PGconn* db_;
  std::string insert_;
  std::string insert_all_;
  std::string lease_;
  std::string complete_;
  std::string update_;
  std::string update_all_;
  std::string outgoing_;
  std::string keys_;
};

}  // namespace

std::unique_ptr<ClientApi> postgresql_api(soci::session& sql) {
  auto* backend = static_cast<soci::postgresql_session_backend*>(sql.get_backend());
  return std::make_unique<PostgresqlApi>(reinterpret_cast<PGconn*>(backend->conn_));
}

}  // namespace txinbox::bench
