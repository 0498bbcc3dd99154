#pragma once

#include <span>
#include <string>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// The element types of the arrays that we send. The values are the fixed OIDs of the server.
enum class PostgresqlElement { bytea = 17, text = 25 };

/// Returns an array in PostgreSQL's binary format, in which no element needs escaping. An empty element becomes NULL.
std::string postgresql_array(PostgresqlElement type, std::span<const std::string_view> elements);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
