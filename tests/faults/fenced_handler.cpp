#include "faults/fenced_handler.hpp"

#include <chrono>
#include <thread>

#include <soci/soci.h>

#include "support/test_database.hpp"

namespace txinbox::test {
namespace {

/// Records this fence for the key. If the key already has this fence or a greater one, the statement violates the
/// primary key.
void pass_fence(soci::session& sql, const std::string& key, long long fence) {
  soci::statement update = (sql.prepare << "update fenced set fence = :f where id = :id and fence < :g",
                            soci::use(fence, "f"), soci::use(key, "id"), soci::use(fence, "g"));
  update.execute(true);
  if (update.get_affected_rows() == 0) {
    sql << "insert into fenced values (:id, :f)", soci::use(key), soci::use(fence);
  }
}

}  // namespace

LeaseHandler fenced(Pool& pool, const Handler& handler) {
  return [&](Lease& lease) {
    {
      const Connection connection = pool.acquire();
      soci::session& sql = connection.session();
      soci::transaction transaction(sql);
      pass_fence(sql, lease.message().business_key, lease.fence());
      handler(sql, lease.delivery());
      transaction.commit();
    }
    // SQLite's clock counts milliseconds, and SQLite does not write a row that does not change. In the same
    // millisecond, the renewal would have fewer steps.
    if (on_sqlite3()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    lease.renew();
  };
}

}  // namespace txinbox::test
