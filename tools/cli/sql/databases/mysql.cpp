#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "backend/mysql/flavour.hpp"
#include "backend/mysql/native.hpp"
#include "backend/mysql/statement.hpp"
#include "backend/query.hpp"
#include "cli/sql/user_sql.hpp"

namespace txinbox::cli {
namespace {

using namespace backend;

using namespace std::string_view_literals;

/// Appends '…'. It means the same bytes under every sql_mode of the session.
void append_quoted(std::string& sql, MYSQL* connection, std::string_view text) {
  const std::size_t begin = sql.size();
  sql.resize(begin + 2 * text.size() + 3);
  char* const to = sql.data() + begin + 1;
  const auto size = static_cast<unsigned long>(text.size());
#ifdef MARIADB_PACKAGE_VERSION
  const unsigned long written = mysql_real_escape_string(connection, to, text.data(), size);
#else
  const unsigned long written = mysql_real_escape_string_quote(connection, to, text.data(), size, '\'');
#endif
  if (written == static_cast<unsigned long>(-1)) throw_mysql_error(connection);
  sql[begin] = '\'';
  to[written] = '\'';
  sql.resize(begin + written + 2);
}

/// Appends an integer without quotes, so that the database compares and adds it as an integer.
void append_number(std::string& sql, MYSQL* connection, const std::string& text) {
  unsigned long long value = 0;
  const char* const end_of_text = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), end_of_text, value);
  if (error == std::errc() && end == end_of_text) {
    sql += text;
  } else {
    append_quoted(sql, connection, text);
  }
}

void append_value(std::string& sql, MYSQL* connection, const SqlValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    append_quoted(sql, connection, *text);
  } else if (const auto* number = std::get_if<SqlNumber>(&value)) {
    append_number(sql, connection, number->text);
  } else if (const auto* integer = std::get_if<long long>(&value)) {
    sql += std::to_string(*integer);
  } else if (const auto* boolean = std::get_if<bool>(&value)) {
    sql += *boolean ? '1' : '0';
  } else {
    sql += "NULL";
  }
}

/// The statement is sent as one text, with the values as literals. A parameter of a prepared statement is different:
/// MySQL 8 gives it the type of its place, so '1.50' could become an integer. Also, not every statement can be
/// prepared.
class MysqlUserStatement final : public UserStatement {
 public:
  MysqlUserStatement(MYSQL* connection, SqlStatement statement)
      : connection_(connection), statement_(std::move(statement)) {}

  bool run(std::span<const SqlValue> values) override {
    std::string text;
    append_to(text, values);
    exec(connection_, text);
    return false;
  }

  void append_to(std::string& text, std::span<const SqlValue> values) const {
    text += statement_.pieces.front();
    for (std::size_t i = 0; i < statement_.values.size(); ++i) {
      append_value(text, connection_, values[statement_.values[i]]);
      text += statement_.pieces[i + 1];
    }
  }

  /// Whether the text certainly remains one statement when other statements surround it: it has no semicolon, not even
  /// in a string, and no comment with code.
  bool may_stand_with_others() const noexcept { return may_stand_with_others_; }

 private:
  static bool has_separator(const std::string& piece) {
    return piece.find(';') != piece.npos || piece.find("/*") != piece.npos;
  }

  MYSQL* const connection_;
  const SqlStatement statement_;
  const bool may_stand_with_others_ = std::ranges::none_of(statement_.pieces, has_separator);
};

std::string sql_modes(const NativeConnection& sql) {
  const auto row = query_row(mysql_native(sql), "SELECT CONCAT(',', @@session.sql_mode, ',')");
  return row ? row->front().value_or("") : std::string();
}

bool has_backslash_escapes(std::string_view modes) {
  return modes.find(",NO_BACKSLASH_ESCAPES,") == std::string_view::npos;
}

class MysqlUserSql final : public UserSql {
 public:
  SqlSyntax default_syntax() const override {
    return {.backslash_escapes = true,
            .double_quoted_text = true,
            .backquoted_names = true,
            .hash_comments = true,
            .dashes_need_space = true,
            .code_in_comments = true,
            .assignments = true,
            .own_placeholders = "?"};
  }

  SqlSyntax syntax(const NativeConnection& sql) const override {
    SqlSyntax found = default_syntax();
    const std::string modes = sql_modes(sql);
    found.backslash_escapes = has_backslash_escapes(modes);
    found.double_quoted_text = modes.find(",ANSI_QUOTES,") == std::string::npos;
    return found;
  }

  SqlLimits limits(const NativeConnection& sql) const override {
    const auto longest = query_row(mysql_native(sql), "SELECT @@session.max_allowed_packet");
    SqlLimits limits{
        .statement_bytes = longest ? static_cast<std::size_t>(number_in(longest->front().value_or(""))) : 0,
        .statement_setting = "max_allowed_packet",
        .doubled = "\0\n\r\\'\"\x1a"sv};
    if (!has_backslash_escapes(sql_modes(sql))) {
      limits.doubled = "'";
      limits.why_no_nul = "text with NUL in it cannot be sent while sql_mode has NO_BACKSLASH_ESCAPES";
    }
    return limits;
  }

  std::string refusal(std::span<const std::string> words) const override {
    const std::string& verb = words.front();
    const std::string second = words.size() > 1 ? words[1] : std::string();
    const bool is_set = verb == "SET";
    if (verb == "XA" || (is_set && std::ranges::find(words, "AUTOCOMMIT") != words.end())) {
      return fmt::format("{} would end the transaction that the message is consumed in; leave it out", verb);
    }
    constexpr std::array<std::string_view, 21> committing{
        "CREATE", "ALTER",  "DROP",    "TRUNCATE",  "RENAME", "GRANT", "REVOKE",
        "LOCK",   "UNLOCK", "ANALYZE", "OPTIMIZE",  "REPAIR", "CHECK", "FLUSH",
        "RESET",  "CACHE",  "INSTALL", "UNINSTALL", "CHANGE", "STOP",  "PURGE"};
    const bool commits = std::ranges::find(committing, verb) != committing.end();
    const bool executes_text = verb == "EXECUTE" && second == "IMMEDIATE";
    const bool sets_statement = is_set && (second == "STATEMENT" || second == "PASSWORD");
    if (second == "TEMPORARY" || !(commits || executes_text || sets_statement)) return {};
    return fmt::format(
        "MariaDB and MySQL commit at {} or can, which would end the transaction that the message is consumed in; run "
        "it beforehand",
        verb);
  }

  void check(const NativeConnection& sql, const SqlStatement& statement) const override {
    MysqlStatement checked;
    checked.prepare(mysql_native(sql), joined(statement, [](std::size_t) { return "?"; }));
  }

  SqlVerdict classify_check_error(const DatabaseError& error, const SqlStatement& statement) const noexcept override {
    const unsigned code = mysql_number(error);
    constexpr unsigned syntax_error = 1064;
    constexpr std::array<unsigned, 10> wrong{1052, 1054, syntax_error, 1066, 1109, 1110, 1136, 1142, 1143, 1146};
    if (std::ranges::find(wrong, code) == wrong.end()) return SqlVerdict::unknown;
    // A literal is allowed in some places where a parameter is not.
    return code == syntax_error && !statement.values.empty() ? SqlVerdict::dubious : SqlVerdict::wrong;
  }

  std::unique_ptr<UserStatement> prepare(const NativeConnection& sql, const SqlStatement& statement,
                                         Runs) const override {
    return std::make_unique<MysqlUserStatement>(mysql_native(sql), statement);
  }

  // The server parses a whole compound statement before it runs the first part, and needs memory for each part.
  std::size_t most_together(const NativeConnection& sql, const SqlLimits& limits) const override {
    constexpr std::size_t most = 1024UL * 1024;
    constexpr std::size_t frame = 2048;  // the text around the statements, and the headers that the server counts
    const auto server = parse_server_version(mysql_get_server_info(mysql_native(sql)));
    if (!flavour_of(server).compound_statements) return 0;
    return limits.statement_bytes > frame ? std::min(most, limits.statement_bytes - frame) : 0;
  }

  void run_together(const NativeConnection& sql, std::span<UserRun> runs) const override {
    MYSQL* db = mysql_native(sql);
    std::string text;
    const auto flush = [&] {
      if (!text.empty()) exec(db, compound(text));
      text.clear();
    };
    for (const UserRun& each : runs) {
      auto& statement = static_cast<MysqlUserStatement&>(*each.statement);  // `prepare` made an object of this type
      if (!statement.may_stand_with_others()) {
        flush();
        statement.run(each.values);
        continue;
      }
      if (!text.empty()) text += ';';
      statement.append_to(text, each.values);
    }
    flush();
  }
};

}  // namespace

const UserSql& mysql_user_sql() noexcept {
  static const MysqlUserSql sql;
  return sql;
}

}  // namespace txinbox::cli
