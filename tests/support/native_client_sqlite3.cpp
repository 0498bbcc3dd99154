#include <sqlite3.h>

#include <stdexcept>

#include "support/native_client.hpp"

namespace txinbox::test {
namespace {

void busy(sqlite3_context* context, int, sqlite3_value**) { sqlite3_result_error_code(context, SQLITE_BUSY); }

class Sqlite3Client final : public NativeClient {
 public:
  explicit Sqlite3Client(const std::string& file) {
    sqlite3* db = nullptr;
    sqlite3_open(file.c_str(), &db);
    db_.reset(db);
    sqlite3_create_function(db, "busy", 0, SQLITE_UTF8, nullptr, busy, nullptr, nullptr);
  }

  NativeHandle handle() const override { return NativeHandle(db_.get()); }

  void run(const std::string& sql) override {
    if (sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
      throw std::runtime_error(sqlite3_errmsg(db_.get()));
    }
  }

  void fail_transiently() override { run("select busy()"); }

  bool leave_busy() override { return false; }
  void end_busy() override {}

 private:
  std::unique_ptr<sqlite3, decltype(&sqlite3_close)> db_{nullptr, &sqlite3_close};
};

}  // namespace

std::unique_ptr<NativeClient> open_sqlite3_client(const std::string& file) {
  return std::make_unique<Sqlite3Client>(file);
}

}  // namespace txinbox::test
