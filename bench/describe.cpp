#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <stdexcept>

#include <soci/soci.h>
#include <soci/version.h>
#include <txinbox/version.hpp>

#include "measure.hpp"
#include "sections.hpp"

namespace txinbox::bench {
namespace {

/// The median time of writing 4 KiB at the end of a file and waiting for the disk, in microseconds.
double fdatasync_time(const std::string& folder) {
  const std::string file = folder + "/fdatasync";
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) throw std::runtime_error("cannot write " + file);
  std::array<char, 4096> block{};
  std::array<double, 201> times{};
  bool ok = true;
  for (double& time : times) {
    const auto start = Clock::now();
    ok = ok && ::write(fd, block.data(), block.size()) == static_cast<ssize_t>(block.size()) && ::fdatasync(fd) == 0;
    time = microseconds_since(start);
  }
  ::close(fd);
  std::remove(file.c_str());
  if (!ok) throw std::runtime_error("cannot write " + file);
  std::ranges::nth_element(times, times.begin() + 100);
  return times[100];
}

}  // namespace

Json describe(const Target& target) {
  const Database database(target);
  Pool pool = database.pool(1);
  const auto connection = pool.acquire();
  soci::session& sql = connection;
  const auto value = [&](const std::string& query) {
    std::string text;
    sql << query, soci::into(text);
    return text;
  };
  Json settings = Json::object();
  std::string version;
  if (target.name == "sqlite3") {
    version = value("SELECT sqlite_version()");
    for (const char* name : {"journal_mode", "synchronous", "cache_size", "page_size"}) {
      settings[name] = value(std::string("PRAGMA ") + name);
    }
  } else if (target.name == "mariadb" || target.name == "mysql") {
    version = value("SELECT VERSION()");
    const char* log_size = target.name == "mysql" ? "innodb_redo_log_capacity" : "innodb_log_file_size";
    for (const char* name : {"innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin", "binlog_format",
                             "innodb_flush_method", "innodb_buffer_pool_size", log_size}) {
      settings[name] = value(std::string("SELECT CAST(@@") + name + " AS CHAR)");
    }
  } else {
    version = value("SHOW server_version");
    for (const char* name : {"fsync", "synchronous_commit", "wal_sync_method", "full_page_writes", "shared_buffers",
                             "max_wal_size", "checkpoint_timeout"}) {
      settings[name] = value(std::string("SHOW ") + name);
    }
  }
  return {{"version", version},
          {"settings", settings},
          {"fdatasync_us", fdatasync_time(target.folder)},
          {"txinbox", txinbox::version()},
          {"soci", SOCI_LIB_VERSION},
          {"compiler", __VERSION__}};
}

}  // namespace txinbox::bench
