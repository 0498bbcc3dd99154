#include "by_hand.hpp"

#include <soci/mysql/soci-mysql.h>
#include <soci/soci.h>

#include <mysqld_error.h>

#include <string>
#include <vector>

#include "client_api.hpp"
#include "database.hpp"

namespace txinbox::bench {

void update_without_dedup(ClientApi& api, const Message& message) {
  api.begin();
  api.update(row_of(message));
  api.commit();
}

bool consume_by_hand(ClientApi& api, const Message& message) {
  api.begin();
  if (!api.claim(message.business_key)) {
    api.roll_back();
    return false;
  }
  api.update(row_of(message));
  api.commit();
  return true;
}

void consume_batch_by_hand(ClientApi& api, std::span<const Message> messages) {
  api.begin();
  api.claim_all(messages);
  for (const Message& each : messages) api.update(row_of(each));
  api.commit();
}

void consume_batch_at_once_by_hand(ClientApi& api, std::span<const Message> messages) {
  api.begin();
  api.claim_all(messages);
  std::vector<int> rows;
  for (const Message& each : messages) rows.push_back(row_of(each));
  api.update_all(rows);
  api.commit();
}

namespace {

bool claim_by_soci(soci::session& sql, const std::string& name, const std::string& key) {
  if (name != "mysql") {
    soci::statement insert =
        (sql.prepare << "INSERT INTO txinbox_consumed_message (consumer, business_key, state, attempt_token) VALUES "
                        "('soci', :key, 'consumed', "
                     << (name == "sqlite3" ? "zeroblob(16)" : "'00000000000000000000000000000000'")
                     << ") ON CONFLICT (consumer, business_key) DO NOTHING",
         soci::use(key));
    insert.execute(true);
    return insert.get_affected_rows() == 1;
  }
  try {
    sql << "INSERT INTO txinbox_consumed_message (consumer, business_key, state, attempt_token, consumed_at) VALUES "
           "('soci', :key, 'consumed', x'00000000000000000000000000000000', UTC_TIMESTAMP(6))",
        soci::use(key);
  } catch (const soci::mysql_soci_error& error) {
    if (error.err_num_ != ER_DUP_ENTRY) throw;
    return false;
  }
  return true;
}

}  // namespace

bool consume_by_soci(soci::session& sql, const Message& message) {
  const std::string name = sql.get_backend_name();
  sql << (name == "sqlite3" ? "BEGIN IMMEDIATE" : "BEGIN");
  if (!claim_by_soci(sql, name, message.business_key)) {
    sql << "ROLLBACK";
    return false;
  }
  const int row = row_of(message);
  sql << "UPDATE bench_account SET n = n + 1 WHERE id = :row", soci::use(row);
  sql << "COMMIT";
  return true;
}

}  // namespace txinbox::bench
