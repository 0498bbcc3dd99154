#include "faults.hpp"

#include <chrono>
#include <exception>
#include <stdexcept>
#include <thread>

#include <soci/soci.h>

#include "protocol.hpp"

namespace txinbox::bench {
namespace {

void add_one(soci::session& sql, int account) {
  sql << "UPDATE bench_account SET n = n + 1 WHERE id = :account", soci::use(account);
}

/// Runs the work, and ignores an error of the database as a careless handler does.
template <class Work>
void swallow(Work&& work) {
  try {
    work();
  } catch (const std::exception&) {
    say("# swallowed");
  }
}

}  // namespace

void handle_with_fault(soci::session& sql, int account, const std::string& fault) {
  using namespace std::chrono_literals;
  count_handler_run();
  add_one(sql, account);
  if (fault == "two" || fault == "three") add_one(sql, account + 1);
  if (fault == "three") add_one(sql, account + 2);
  if (fault == "throw") throw std::runtime_error("the handler fails");
  if (fault == "slow") std::this_thread::sleep_for(1500ms);
  if (fault == "hang") {
    say("AT");
    std::this_thread::sleep_for(60s);
  }
  if (fault == "swallow") swallow([&] { sql << "INSERT INTO peer_duplicate VALUES (1)"; });
  if (fault == "deadlock") {
    say("AT");
    std::this_thread::sleep_for(500ms);
    swallow([&] { add_one(sql, account + 1); });
    swallow([&] { add_one(sql, account + 2); });
  }
  if (fault == "commit" || fault == "ddl") {
    sql << (fault == "commit" ? "COMMIT" : "CREATE TABLE IF NOT EXISTS peer_ddl (i int)");
    add_one(sql, account + 1);
    throw std::runtime_error("the handler fails");
  }
}

}  // namespace txinbox::bench
