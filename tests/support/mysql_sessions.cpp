#include "support/mysql_sessions.hpp"

#include "support/test_database.hpp"

namespace txinbox::test {

std::string processlist() {
  return on_mariadb() || on_oceanbase() ? "information_schema.processlist" : "performance_schema.processlist";
}

std::string sessions_in_transaction() {
  if (on_mariadb()) return "(select trx_mysql_thread_id as id from information_schema.innodb_trx)";
  if (on_oceanbase()) {
    return "(select session_id as id from oceanbase.V$OB_TRANSACTION_SCHEDULERS where state like '%ACTIVE' and "
           "session_id <> connection_id())";
  }
  return "(select processlist_id as id from performance_schema.events_transactions_current e "
         "join performance_schema.threads t on t.thread_id = e.thread_id where e.state = 'ACTIVE')";
}

std::string sessions_waiting_for_lock() {
  if (on_mariadb()) {
    return "(select trx_mysql_thread_id as id from information_schema.innodb_trx where trx_state = 'LOCK WAIT')";
  }
  if (on_oceanbase()) {
    return "(select session_id as id from oceanbase.__all_virtual_lock_wait_stat where need_wait = 1)";
  }
  return "(select processlist_id as id from performance_schema.data_lock_waits w "
         "join performance_schema.threads t on t.thread_id = w.requesting_thread_id)";
}

}  // namespace txinbox::test
