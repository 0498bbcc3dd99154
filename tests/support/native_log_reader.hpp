#pragma once

#include <functional>
#include <string>

#include "support/test_database.hpp"

namespace txinbox::test {

/// A client that reads the changes of a table from the server's log, as Debezium does. On PostgreSQL it has a
/// publication and a replication slot.
class LogReader {
 public:
  LogReader(const TestDatabase&, const std::string& table);
  ~LogReader();
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;

  /// PostgreSQL: the connection ends, and the slot stays.
  void disconnect();

 private:
  const TestDatabase& db_;
  const std::string name_;
  std::function<void()> disconnect_;
};

}  // namespace txinbox::test
