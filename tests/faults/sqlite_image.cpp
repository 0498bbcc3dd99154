#include "faults/sqlite_image.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

namespace txinbox::test {

std::string sqlite_file(const TestDatabase& db) { return db.url().substr(std::string("sqlite://").size()); }

SqliteImage::SqliteImage(const TestDatabase& db, const std::string& journal_mode) : db_(db), file_(sqlite_file(db)) {
  db_.run("pragma journal_mode = " + journal_mode);
  db_.disconnect();
  std::ifstream file(file_, std::ios::binary);
  bytes_.assign(std::istreambuf_iterator<char>(file), {});
}

void SqliteImage::restore() const {
  db_.disconnect();
  for (const char* suffix : {"-wal", "-shm", "-journal"}) std::filesystem::remove(file_ + suffix);
  std::ofstream(file_, std::ios::binary | std::ios::trunc) << bytes_;
}

}  // namespace txinbox::test
