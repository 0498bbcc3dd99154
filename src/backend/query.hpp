#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <txinbox/connection_ref.hpp>

#include "backend/native_connection.hpp"
#include "base/private_api.hpp"

namespace txinbox {
TXINBOX_PRIVATE_API_BEGIN
namespace backend {

/// One row. Each field is text, or none for NULL.
using Row = std::vector<std::optional<std::string>>;

/// Calls `Database::query` on this connection.
std::vector<Row> query(const NativeConnection& connection, const std::string& text, std::size_t columns);

/// Returns the only field of the first row. Empty for NULL, or if there is no row.
std::string query_text(const NativeConnection& connection, const std::string& text);

/// A result with two columns, names and values. NULL becomes an empty text.
using Settings = std::map<std::string, std::string, std::less<>>;
Settings query_settings(const NativeConnection& connection, const std::string& text);

/// Returns the value of a setting. Empty if the server has no setting of this name.
std::string_view value_of(const Settings& settings, std::string_view name);

/// Returns the number in the leading digits of `text`. Returns `otherwise` if there are no digits.
long long number_in(std::string_view text, long long otherwise = 0);

/// The number in a field of a row; 0 for NULL.
std::int64_t number_or_zero(const std::optional<std::string>& field);

/// Returns the time that `Dialect::utc_text` has made. None for NULL.
std::optional<DatabaseTime> time_in(const std::optional<std::string>& field);

}  // namespace backend
TXINBOX_PRIVATE_API_END
}  // namespace txinbox
