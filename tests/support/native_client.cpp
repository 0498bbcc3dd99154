#include "support/native_client.hpp"

#include <libpq-fe.h>
#include <mysql.h>

#include <stdexcept>

#include "base/url.hpp"

namespace txinbox::test {
namespace {

class PostgresqlClient final : public NativeClient {
 public:
  explicit PostgresqlClient(const std::string& url) : pg_(PQconnectdb(url.c_str()), &PQfinish) {}

  NativeHandle handle() const override { return NativeHandle(pg_.get()); }

  void run(const std::string& sql) override {
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(pg_.get(), sql.c_str()), &PQclear);
    const auto status = PQresultStatus(result.get());
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) throw std::runtime_error(PQerrorMessage(pg_.get()));
  }

  // Like the destructor of a wrapper that drops its prepared statement: DEALLOCATE fails in the aborted transaction.
  void fail_transiently() override {
    try {
      run("do $$ begin raise exception 'so' using errcode = '40P01'; end $$");
    } catch (...) {
      PQclear(PQexec(pg_.get(), "deallocate all"));
      throw;
    }
  }

  bool leave_busy() override { return PQenterPipelineMode(pg_.get()) == 1; }
  void end_busy() override { PQexitPipelineMode(pg_.get()); }

 private:
  std::unique_ptr<PGconn, decltype(&PQfinish)> pg_;
};

class MysqlClient final : public NativeClient {
 public:
  MysqlClient() = default;

  explicit MysqlClient(const std::string& text) {
    const detail::Url url = detail::parse_url(text);
    if (mysql_real_connect(db_.get(), url.host.c_str(), url.user.c_str(), url.password.c_str(), url.path.c_str(),
                           static_cast<unsigned>(std::stoi(url.port)), nullptr, 0) == nullptr) {
      throw std::runtime_error(mysql_error(db_.get()));
    }
  }

  NativeHandle handle() const override { return NativeHandle(db_.get()); }

  void run(const std::string& sql) override {
    if (mysql_query(db_.get(), sql.c_str()) != 0) throw std::runtime_error(mysql_error(db_.get()));
    mysql_free_result(mysql_store_result(db_.get()));
  }

  // Like a wrapper whose destructor closes its statement: the client library then forgets the error's number.
  void fail_transiently() override {
    std::string text;
    {
      const std::unique_ptr<MYSQL_STMT, decltype(&mysql_stmt_close)> statement(mysql_stmt_init(db_.get()),
                                                                               &mysql_stmt_close);
      const std::string sql = "call fail_transiently()";
      if (mysql_stmt_prepare(statement.get(), sql.data(), sql.size()) == 0) mysql_stmt_execute(statement.get());
      text = mysql_stmt_error(statement.get());
    }
    throw std::runtime_error(text);
  }

  bool leave_busy() override {
    mysql_query(db_.get(), "select 1");
    unread_ = mysql_use_result(db_.get());
    return true;
  }
  void end_busy() override { mysql_free_result(unread_); }

 private:
  std::unique_ptr<MYSQL, decltype(&mysql_close)> db_{mysql_init(nullptr), &mysql_close};
  MYSQL_RES* unread_ = nullptr;
};

}  // namespace

std::unique_ptr<NativeClient> NativeClient::open(const TestDatabase& db) {
  if (on_postgresql()) return std::make_unique<PostgresqlClient>(db.url());
  if (on_mysql()) return std::make_unique<MysqlClient>(db.url());
  const detail::Url url = detail::parse_url(db.url(), detail::UrlKind::file);
  return open_sqlite3_client((url.has_authority ? "/" : "") + url.path);
}

std::unique_ptr<NativeClient> NativeClient::unopened() {
  if (on_postgresql()) return std::make_unique<PostgresqlClient>("postgresql://nobody@127.0.0.1:1/none");
  if (on_mysql()) return std::make_unique<MysqlClient>();
  return open_sqlite3_client("/no/such/folder/file.db");
}

}  // namespace txinbox::test
