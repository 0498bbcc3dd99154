#include "backend/query.hpp"

#include <charconv>

#include "backend/database.hpp"
#include "base/utc_time.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

std::vector<Row> query(const NativeConnection& connection, const std::string& text, std::size_t columns) {
  return connection.database().query(connection, text, columns);
}

std::string query_text(const NativeConnection& connection, const std::string& text) {
  const auto rows = query(connection, text, 1);
  return rows.empty() ? std::string() : rows.front().front().value_or("");
}

Settings query_settings(const NativeConnection& connection, const std::string& text) {
  Settings settings;
  for (const Row& row : query(connection, text, 2)) settings[row[0].value_or("")] = row[1].value_or("");
  return settings;
}

std::string_view value_of(const Settings& settings, std::string_view name) {
  const auto found = settings.find(name);
  return found == settings.end() ? std::string_view() : std::string_view(found->second);
}

long long number_in(std::string_view text, long long otherwise) {
  long long number = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::int64_t number_or_zero(const std::optional<std::string>& field) { return number_in(field.value_or("")); }

std::optional<DatabaseTime> time_in(const std::optional<std::string>& field) {
  return field ? detail::parse_utc(*field) : std::nullopt;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
