#include "backend/query.hpp"

#include <soci/soci.h>

#include <charconv>
#include <deque>

#include "backend/registry.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

std::vector<Row> query(soci::session& sql, const std::string& text, std::size_t columns) {
  std::deque<std::string> values(columns);
  std::deque<soci::indicator> indicators(columns, soci::i_null);
  soci::statement statement(sql);
  for (std::size_t i = 0; i < columns; ++i) statement.exchange(soci::into(values[i], indicators[i]));
  statement.alloc();
  // One-time: nothing is prepared on the server that a pooler could drop.
  statement.prepare(text, soci::details::st_one_time_query);
  statement.define_and_bind();
  statement.execute(false);
  database_of(sql).check_last_statement(sql);

  // Fetched to the end: SQLite keeps a statement that is not open, and with it the read transaction.
  std::vector<Row> rows;
  while (statement.fetch()) {
    Row& row = rows.emplace_back(columns);
    for (std::size_t i = 0; i < columns; ++i) {
      if (indicators[i] != soci::i_null) row[i] = values[i];
    }
  }
  return rows;
}

std::string query_text(soci::session& sql, const std::string& text) {
  const auto rows = query(sql, text, 1);
  return rows.empty() ? std::string() : rows.front().front().value_or("");
}

Settings query_settings(soci::session& sql, const std::string& text) {
  Settings settings;
  for (const Row& row : query(sql, text, 2)) settings[row[0].value_or("")] = row[1].value_or("");
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

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
