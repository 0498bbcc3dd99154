#pragma once

#include <string>

// The sessions of a MariaDB or MySQL server, as tables for a FROM clause. While any session of a MySQL server runs a
// statement that is not UTF-8, the server refuses to read information_schema.processlist and innodb_trx (error 3854).
// Its performance schema always answers. MariaDB's is off, and there the other tables do.

namespace txinbox::test {

/// All sessions: id, host, db, info.
std::string processlist();

/// The id of those with an open transaction. InnoDB on MariaDB gives an old answer if asked again within 100 ms.
std::string sessions_in_transaction();

/// The id of those that wait for the lock of a row or a table. InnoDB on MariaDB gives an old answer, as above.
std::string sessions_waiting_for_lock();

}  // namespace txinbox::test
