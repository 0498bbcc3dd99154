#pragma once

#include <functional>

#include "backend/mysql/statement.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// A statement whose text depends on a number of keys. It is prepared when two batches in a row have the same number:
/// preparing costs a round trip, and saves the server a fifth of its work for each further batch.
class MysqlManyKeysStatement {
 public:
  /// Returns the statement for this number of keys. Returns null if it is not prepared: then run its text. `sql` makes
  /// the text.
  MysqlStatement* prepared_for(MYSQL* connection, std::size_t keys, const std::function<std::string()>& sql) {
    const bool is_repeated = keys == last_keys_;
    last_keys_ = keys;
    if (keys == prepared_keys_ && statement_.prepared_on(connection)) return &statement_;
    if (!is_repeated) return nullptr;
    prepared_keys_ = statement_.try_prepare(connection, sql()) ? keys : 0;
    return prepared_keys_ == 0 ? nullptr : &statement_;
  }

  void close() noexcept {
    statement_.close();
    prepared_keys_ = last_keys_ = 0;
  }

 private:
  MysqlStatement statement_;
  std::size_t prepared_keys_ = 0;
  std::size_t last_keys_ = 0;
};

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
