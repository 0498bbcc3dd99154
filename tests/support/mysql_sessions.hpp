#pragma once

#include <string>

// The sessions of a MariaDB or MySQL server, as tables for a FROM clause. While any session of a MySQL server runs a
// statement that is not UTF-8, the server refuses to read information_schema.processlist and innodb_trx (error 3854).
// Its performance schema always answers. MariaDB's is off, and there the other tables do. OceanBase has its own views.

namespace txinbox::test {

/// All sessions, with the columns id, host, db and info.
std::string processlist();

/// The ids of the sessions with an open transaction. InnoDB on MariaDB answers from a cache if it is asked again within
/// 100 ms.
std::string sessions_in_transaction();

/// The ids of the sessions that wait for the lock of a row or a table. InnoDB on MariaDB answers from a cache if it is
/// asked again within 100 ms.
std::string sessions_waiting_for_lock();

}  // namespace txinbox::test
