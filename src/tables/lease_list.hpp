#pragma once

#include <string>
#include <string_view>

#include <txinbox/version.hpp>

#include "backend/dialect.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The pieces of a SELECT of the leases: the rows of a `LeaseConsumer` that were neither released nor completed.
///
/// With the index on leases, no other index may be used: a consumer can have millions of rows, and few leases. Without
/// it, the primary key finds the rows of a consumer.
class LeaseList {
 public:
  enum class Index { missing, used };

  LeaseList(const backend::Dialect& sql, Index index) : sql_(sql), index_(index) {}

  /// The table's name, with a hint.
  std::string table() const;

  /// The column `consumer`. With the index on leases, it is an expression, so that the database uses no other index.
  std::string consumer() const;

  /// The condition for the leases of this consumer; of all consumers if the name is empty.
  std::string condition(std::string_view consumer_name) const;

 private:
  const backend::Dialect& sql_;
  const Index index_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
