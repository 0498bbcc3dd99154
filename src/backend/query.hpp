#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <txinbox/version.hpp>

#include "backend/native_connection.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// One row as text; none for NULL.
using Row = std::vector<std::optional<std::string>>;

/// `Database::query` on this connection.
std::vector<Row> query(const NativeConnection& connection, const std::string& text, std::size_t columns);

/// The only field of the first row; empty for NULL or no row.
std::string query_text(const NativeConnection& connection, const std::string& text);

/// A result of two columns as names and values. NULL becomes empty.
using Settings = std::map<std::string, std::string, std::less<>>;
Settings query_settings(const NativeConnection& connection, const std::string& text);

/// The value of a setting; empty when the server has none of that name.
std::string_view value_of(const Settings& settings, std::string_view name);

/// The leading digits of `text`; `otherwise` when there are none.
long long number_in(std::string_view text, long long otherwise = 0);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
