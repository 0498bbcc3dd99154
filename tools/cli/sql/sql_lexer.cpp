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
  Lexer(std::string_view sql, const SqlSyntax& syntax) : sql_(sql), syntax_(syntax) {}

  std::vector<Token> run() {
    while (at_ < sql_.size()) next();
    return std::move(tokens_);
  }

 private:
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
    if (c == '\'') return text(syntax_.backslash_escapes, 0);
    if (c == '"') return double_quoted();
    if (c == '`' && syntax_.backquoted_names) return emit_as_is(Token::Kind::quoted, end_of_quote(at_, '`', false));
    if (c == '[' && syntax_.bracketed_names) return bracketed_name();
    if (syntax_.own_placeholders.find(c) != std::string_view::npos) {
      refuse(fmt::format("the database reads {} as a placeholder without a value; write :name", c));
    }
    if (c == '$') return syntax_.dollar_quotes ? dollar_quoted() : word();
    if (c == ':') return colon();
    if (c == ';') return emit(Token::Kind::semicolon, ";", at_ + 1);
    if (starts_name(c) || is_digit(c)) return word();
    emit_as_is(Token::Kind::other, at_ + 1);
  }

  bool starts_line_comment() const {
    if (peek() == '#') return syntax_.hash_comments;
    if (!looking_at("--")) return false;
    return !syntax_.dashes_need_space || at_ + 2 == sql_.size() || static_cast<unsigned char>(peek(2)) <= ' ';
  }

  void line_comment() { emit(Token::Kind::space, " ", std::min(sql_.find('\n', at_), sql_.size())); }

  void block_comment() {
    std::size_t depth = 1;
    std::size_t end = at_ + 2;
    while (depth > 0) {
      if (end + 1 >= sql_.size()) refuse("a comment does not end");
      const auto two = sql_.substr(end, 2);
      if (two == "*/") {
        --depth;
        end += 2;
      } else if (syntax_.nested_comments && two == "/*") {
        ++depth;
        end += 2;
      } else {
        ++end;
      }
    }
    const bool hint = syntax_.code_in_comments && (looking_at("/*+") || looking_at("/*!") || looking_at("/*M!"));
    if (hint) return emit_as_is(Token::Kind::hint, end);
    emit(Token::Kind::space, " ", end);
  }

  // The end of the quoted text that begins at `start`. A doubled quote is a quote in the text.
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

  // `prefix`: the length of the E in E'…'.
  void text(bool backslash, std::size_t prefix) {
    emit_as_is(Token::Kind::quoted, end_of_quote(at_ + prefix, '\'', backslash));
  }

  void double_quoted() {
    const bool backslash = syntax_.double_quoted_text && syntax_.backslash_escapes;
    emit_as_is(Token::Kind::quoted, end_of_quote(at_, '"', backslash));
  }

  void bracketed_name() {
    const auto end = sql_.find(']', at_);
    if (end == std::string_view::npos) refuse("a [ is not closed");
    emit_as_is(Token::Kind::quoted, end + 1);
  }

  void dollar_quoted() {
    if (is_digit(peek(1))) refuse("write :name for a placeholder, not $1");
    std::size_t tag_end = at_ + 1;
    while (tag_end < sql_.size() && continues_name(sql_[tag_end])) ++tag_end;
    if (tag_end >= sql_.size() || sql_[tag_end] != '$') return emit_as_is(Token::Kind::other, at_ + 1);
    const auto tag = sql_.substr(at_, tag_end + 1 - at_);
    const auto end = sql_.find(tag, tag_end + 1);
    if (end == std::string_view::npos) refuse(fmt::format("a {} is not closed", tag));
    emit_as_is(Token::Kind::quoted, end + tag.size());
  }

  void colon() {
    if (syntax_.casts && looking_at("::")) return emit(Token::Kind::other, "::", at_ + 2);
    if (syntax_.assignments && looking_at(":=")) return emit(Token::Kind::other, ":=", at_ + 2);
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
    if (syntax_.escape_text && (peek() == 'e' || peek() == 'E') && peek(1) == '\'') return text(true, 1);
    // After a number, a dollar begins a dollar quote.
    const bool with_dollars = !(syntax_.dollar_quotes && is_digit(peek()));
    std::size_t end = at_ + 1;
    while (end < sql_.size() && (continues_name(sql_[end]) || (with_dollars && sql_[end] == '$'))) ++end;
    emit_as_is(Token::Kind::word, end);
  }

  std::string_view sql_;
  SqlSyntax syntax_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> lex(std::string_view sql, const SqlSyntax& syntax) { return Lexer(sql, syntax).run(); }

}  // namespace txinbox::cli
