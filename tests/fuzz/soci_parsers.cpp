#include "soci_parsers.hpp"

#include <cstddef>
#include <utility>
#include <vector>

#include <soci/mysql/soci-mysql.h>
#include <soci/postgresql/soci-postgresql.h>

#include "cli/sql/soci_placeholders.hpp"
#include "fuzz.hpp"

namespace txinbox::fuzz {
namespace {

using Placeholders = std::vector<std::pair<std::size_t, std::string>>;

// A session that nobody connected: SOCI's statements keep a reference to it, and parse without it.
template <class Session>
Session& no_session() {
  alignas(Session) static std::byte place[sizeof(Session)];
  return *reinterpret_cast<Session*>(place);
}

std::string read_by_postgresql(const std::string& text) {
  soci::postgresql_statement_backend backend(no_session<soci::postgresql_session_backend>(), false);
  backend.prepare(text, soci::details::st_one_time_query);
  return backend.query_;
}

std::string numbered(const std::string& text, const Placeholders& placeholders) {
  std::string result;
  std::size_t at = 0;
  for (std::size_t i = 0; i < placeholders.size(); ++i) {
    result += text.substr(at, placeholders[i].first - at) + "$" + std::to_string(i + 1);
    at = placeholders[i].first + 1 + placeholders[i].second.size();
  }
  return result + text.substr(at);
}

Placeholders read_by_mysql(const std::string& text) {
  soci::mysql_statement_backend backend(no_session<soci::mysql_session_backend>());
  backend.prepare(text, soci::details::st_one_time_query);
  Placeholders placeholders;
  std::size_t at = 0;
  for (std::size_t i = 0; i < backend.names_.size(); ++i) {
    at += backend.queryChunks_.at(i).size();
    placeholders.emplace_back(at, backend.names_[i]);
    at += 1 + backend.names_[i].size();
  }
  return placeholders;
}

}  // namespace

void claim_soci_reads_alike(const std::string& sql, cli::Database database) {
  const auto placeholders = cli::soci_placeholders(sql, database);
  if (database == cli::Database::postgresql) {
    claim(read_by_postgresql(sql) == numbered(sql, placeholders), "SOCI finds PostgreSQL's placeholders where we do");
  } else {
    claim(read_by_mysql(sql) == placeholders, "SOCI finds MySQL's placeholders where we do");
  }
}

}  // namespace txinbox::fuzz
