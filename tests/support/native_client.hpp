#pragma once

#include <memory>
#include <string>

#include <txinbox/native.hpp>

#include "support/test_database.hpp"

namespace txinbox::test {

/// A connection of the database's own client library, as in a service without SOCI. Its errors are plain
/// std::runtime_error, so their type says nothing about the kind of the error.
class NativeClient {
 public:
  virtual ~NativeClient() = default;
  NativeClient(const NativeClient&) = delete;
  NativeClient& operator=(const NativeClient&) = delete;

  virtual NativeHandle handle() const = 0;
  virtual void run(const std::string& sql) = 0;

  /// Runs a statement that fails with a transient error.
  virtual void fail_transiently() = 0;

  /// Begins something during which no other statement can run: a pipeline, or a result that is not read. Returns false
  /// if the client library has no such thing.
  virtual bool leave_busy() = 0;
  virtual void end_busy() = 0;

  static std::unique_ptr<NativeClient> open(const TestDatabase& db);

  /// A connection object that is not opened.
  static std::unique_ptr<NativeClient> unopened();

 protected:
  NativeClient() = default;
};

std::unique_ptr<NativeClient> open_sqlite3_client(const std::string& file);

}  // namespace txinbox::test
