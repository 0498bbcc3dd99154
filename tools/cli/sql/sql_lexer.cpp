#include "cli/sql/sql_lexer.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "console/usage_error.hpp"

namespace txinbox::cli {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool continues_name(char c) { return starts_name(c) || is_digit(c); }
bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

class Lexer {
 public:
  Lexer(std::string_view sql, const Dialect& dialect) : sql_(sql), dialect_(dialect) {}

  std::vector<Token> run() {
    while (at_ < sql_.size()) next();
    return std::move(tokens_);
  }

 private:
  bool on(Database database) const { return dialect_.database == database; }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < sql_.size() ? sql_[at_ + ahead] : '\0'; }
  bool looking_at(std::string_view text) const { return sql_.substr(at_).starts_with(text); }

  [[noreturn]] void refuse(const std::string& why) const {
    throw UsageError(fmt::format("SQL line {}: {}", line_, why));
  }

  void emit(Token::Kind kind, std::string text, std::size_t end) {
    tokens_.push_back({kind, std::move(text), line_});
    const auto consumed = sql_.substr(at_, end - at_);
    line_ += static_cast<std::size_t>(std::count(consumed.begin(), consumed.end(), '\n'));
    at_ = end;
  }

  void emit_as_is(Token::Kind kind, std::size_t end) { emit(kind, std::string(sql_.substr(at_, end - at_)), end); }

  void next() {
    const char c = peek();
    if (is_space(c)) return emit(Token::Kind::space, " ", at_ + 1);
    if (starts_line_comment()) return line_comment();
    if (looking_at("/*")) return block_comment();
    if (c == '\'') return string_literal(dialect_.backslash_escapes, 0);
    if (c == '"') return double_quoted();
    if (c == '`' && !on(Database::postgresql)) return emit_as_is(Token::Kind::quoted, end_of_quote(at_, '`', false));
    if (c == '[' && on(Database::sqlite3)) return bracketed_name();
    if (c == '$') return dollar();
    if (c == ':') return colon();
    if (c == ';') return emit(Token::Kind::semicolon, ";", at_ + 1);
    if (starts_name(c) || is_digit(c)) return word();
    if (on(Database::sqlite3) && (c == '?' || c == '@' || c == '#')) {
      refuse(fmt::format("SQLite takes {} for a placeholder that nothing is bound to; write :name", c));
    }
    emit_as_is(Token::Kind::other, at_ + 1);
  }

  bool starts_line_comment() const {
    if (peek() == '#') return on(Database::mysql);
    if (!looking_at("--")) return false;
    // To MySQL, a--1 is a subtraction.
    return !on(Database::mysql) || at_ + 2 == sql_.size() || static_cast<unsigned char>(peek(2)) <= ' ';
  }

  void line_comment() { emit(Token::Kind::space, " ", std::min(sql_.find('\n', at_), sql_.size())); }

  void block_comment() {
    const bool nests = on(Database::postgresql);
    std::size_t depth = 1;
    std::size_t end = at_ + 2;
    while (depth > 0) {
      if (end + 1 >= sql_.size()) refuse("a comment does not end");
      const auto two = sql_.substr(end, 2);
      if (two == "*/") {
        --depth;
        end += 2;
      } else if (nests && two == "/*") {
        ++depth;
        end += 2;
      } else {
        ++end;
      }
    }
    const bool hint = on(Database::mysql) && (looking_at("/*+") || looking_at("/*!") || looking_at("/*M!"));
    if (hint) return emit_as_is(Token::Kind::hint, end);
    emit(Token::Kind::space, " ", end);
  }

  // The end of what opens at `start`; a doubled quote stands for itself.
  std::size_t end_of_quote(std::size_t start, char quote, bool backslash) const {
    for (std::size_t i = start + 1; i < sql_.size(); ++i) {
      if (backslash && sql_[i] == '\\') {
        ++i;
      } else if (sql_[i] == quote) {
        if (i + 1 < sql_.size() && sql_[i + 1] == quote) {
          ++i;
        } else {
          return i + 1;
        }
      }
    }
    refuse(fmt::format("a {} is not closed", quote));
  }

  // `prefix`: the length of the E in E'…'. SOCI's PostgreSQL parser knows no backslash: \' becomes ''.
  void string_literal(bool backslash, std::size_t prefix) {
    const auto end = end_of_quote(at_ + prefix, '\'', backslash);
    if (!on(Database::postgresql) || !backslash) return emit_as_is(Token::Kind::quoted, end);
    std::string text;
    for (std::size_t i = at_; i < end; ++i) {
      if (sql_[i] == '\\' && i + 1 < end) {
        text += sql_[i + 1] == '\'' ? std::string("''") : std::string(sql_.substr(i, 2));
        ++i;
      } else {
        text += sql_[i];
      }
    }
    emit(Token::Kind::quoted, std::move(text), end);
  }

  // SOCI's MySQL parser knows no "…": where that is a string, the same string is written as '…'.
  void double_quoted() {
    const bool is_string = on(Database::mysql) && !dialect_.ansi_quotes;
    const bool backslash = is_string && dialect_.backslash_escapes;
    const auto end = end_of_quote(at_, '"', backslash);
    const auto inner = sql_.substr(at_ + 1, end - at_ - 2);
    if (!is_string || inner.find_first_of(":'") == std::string_view::npos) {
      return emit_as_is(Token::Kind::quoted, end);
    }
    std::string text = "'";
    for (std::size_t i = 0; i < inner.size(); ++i) {
      if (backslash && inner[i] == '\\' && i + 1 < inner.size()) {
        text += inner.substr(i, 2);
        ++i;
      } else if (inner[i] == '"') {
        text += '"';
        ++i;
      } else if (inner[i] == '\'') {
        text += "''";
      } else {
        text += inner[i];
      }
    }
    emit(Token::Kind::quoted, text + "'", end);
  }

  void bracketed_name() {
    const auto end = sql_.find(']', at_);
    if (end == std::string_view::npos) refuse("a [ is not closed");
    emit_as_is(Token::Kind::quoted, end + 1);
  }

  void dollar() {
    if (on(Database::sqlite3)) refuse("SQLite takes $name for a placeholder that nothing is bound to; write :name");
    if (on(Database::mysql)) return word();
    if (is_digit(peek(1))) refuse("write :name for a placeholder, not $1");
    std::size_t tag_end = at_ + 1;
    while (tag_end < sql_.size() && continues_name(sql_[tag_end])) ++tag_end;
    if (tag_end >= sql_.size() || sql_[tag_end] != '$') return emit_as_is(Token::Kind::other, at_ + 1);
    const auto tag = sql_.substr(at_, tag_end + 1 - at_);
    const auto end = sql_.find(tag, tag_end + 1);
    if (end == std::string_view::npos) refuse(fmt::format("a {} is not closed", tag));
    // SOCI's parser knows no dollar quotes: the same string as '…', or as E'…' where a backslash in
    // '…' could be read as an escape. The blank keeps what stands before it (U&) from being its prefix.
    const auto inner = sql_.substr(tag_end + 1, end - tag_end - 1);
    const bool escapes = inner.find('\\') != std::string_view::npos;
    std::string text = escapes ? " E'" : " '";
    for (char c : inner) {
      if (c == '\'' || c == '\\') text += c;
      text += c;
    }
    emit(Token::Kind::quoted, text + "'", end + tag.size());
  }

  void colon() {
    if (on(Database::postgresql) && looking_at("::")) return emit(Token::Kind::other, "::", at_ + 2);
    if (!on(Database::sqlite3) && looking_at(":=")) return emit(Token::Kind::other, ":=", at_ + 2);
    std::size_t end = at_ + 1;
    while (end < sql_.size() && is_ascii(sql_[end]) && continues_name(sql_[end])) ++end;
    const bool goes_on = end < sql_.size() && (!is_ascii(sql_[end]) || sql_[end] == '$');
    if (end == at_ + 1 || is_digit(peek(1)) || goes_on) {
      refuse(
          "a colon begins a placeholder, whose name is letters, digits and underscores, such as :order_no (for a "
          "JSON member with another name, use --bind)");
    }
    emit(Token::Kind::placeholder, std::string(sql_.substr(at_ + 1, end - at_ - 1)), end);
  }

  void word() {
    if (on(Database::postgresql) && (peek() == 'e' || peek() == 'E') && peek(1) == '\'') {
      return string_literal(true, 1);
    }
    // Behind a number, a dollar begins a dollar quote.
    const bool with_dollars = !(on(Database::postgresql) && is_digit(peek()));
    std::size_t end = at_ + 1;
    while (end < sql_.size() && (continues_name(sql_[end]) || (with_dollars && sql_[end] == '$'))) ++end;
    emit_as_is(Token::Kind::word, end);
  }

  std::string_view sql_;
  Dialect dialect_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

Database sql_database(std::string_view name) {
  if (name == "mysql") return Database::mysql;
  return name == "postgresql" ? Database::postgresql : Database::sqlite3;
}

Dialect default_dialect(Database database) {
  if (database == Database::mysql) return {.database = database, .backslash_escapes = true, .ansi_quotes = false};
  return {.database = database, .backslash_escapes = false, .ansi_quotes = true};
}

std::vector<Token> lex(std::string_view sql, const Dialect& dialect) { return Lexer(sql, dialect).run(); }

}  // namespace txinbox::cli
