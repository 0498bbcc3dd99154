// SQL that consists of known pieces. The text of a string, name or comment must not split a statement and must not be a
// placeholder, and a string must keep its value.
//
// Input: the dialect's name, then one piece on each line: a character for its kind, and its text, in which ~ stands for
// a line feed.

#include <algorithm>
#include <cctype>
#include <vector>

#include "cli/sql/sql_lexer.hpp"
#include "cli/sql/sql_script.hpp"
#include "console/usage_error.hpp"
#include "dialects.hpp"
#include "fuzz.hpp"

using namespace txinbox::fuzz;
using namespace txinbox::cli;
using txinbox::cli::SqlSyntax;

namespace {

struct Expected {
  std::vector<std::string> names = {};   // the names of the placeholders, each once
  std::vector<std::string> quoted = {};  // the values of the strings and quoted names
  bool is_empty = true;
};

std::string doubled(std::string_view text, std::string_view which) {
  std::string result;
  for (const char c : text) {
    if (which.find(c) != std::string_view::npos) result += c;
    result += c;
  }
  return result;
}

std::string escaped(std::string_view text, std::string_view which) {
  std::string result;
  for (const char c : text) {
    if (which.find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

std::string word_of(std::string_view text, char first) {
  std::string word(1, first);
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) word += c;
  }
  return word;
}

// The value of a quoted token of the result.
std::string value_of(std::string_view token, const SqlSyntax& syntax) {
  if (token[0] == '$') {
    const auto tag = token.find('$', 1) + 1;
    return std::string(token.substr(tag, token.size() - 2 * tag));
  }
  const bool escapes = token[0] == 'E';
  if (escapes) token.remove_prefix(1);
  const char quote = token[0] == '[' ? ']' : token[0];
  const bool is_string = quote == '\'' || (quote == '"' && syntax.double_quoted_text);
  const bool backslash = escapes || (is_string && syntax.backslash_escapes);
  std::string value;
  for (std::size_t i = 1; i + 1 < token.size(); ++i) {
    if (token[i] == quote || (backslash && token[i] == '\\')) ++i;
    value += token[i];
  }
  return value;
}

class Writer {
 public:
  explicit Writer(const SqlSyntax& syntax) : syntax_(syntax) {}

  void piece(char kind, std::string text) {
    std::replace(text.begin(), text.end(), '~', '\n');
    const char* const backslash = syntax_.backslash_escapes ? "'\\" : "'";
    if (text.find('\0') != std::string::npos) may_be_refused_ = true;
    switch (kind) {
      case 's':
        return quote("'" + doubled(text, backslash) + "'", text);
      case 'q':  // as 's', with \'
        return quote("'" + (syntax_.backslash_escapes ? escaped(text, "'\\") : doubled(text, "'")) + "'", text);
      case 'd': {
        const bool is_string = syntax_.double_quoted_text && syntax_.backslash_escapes;
        return quote('"' + doubled(text, is_string ? "\"\\" : "\"") + '"', text);
      }
      case 'D':  // as 'd', with \"
        if (syntax_.double_quoted_text && syntax_.backslash_escapes) {
          quote('"' + escaped(text, "\"\\") + '"', text);
        }
        return;
      case 'b':
        if (syntax_.backquoted_names) quote('`' + doubled(text, "`") + '`', text);
        return;
      case '[':
        std::erase(text, ']');
        if (syntax_.bracketed_names) quote('[' + text + ']', text);
        return;
      case 'e':
        if (syntax_.escape_text) quote("E'" + doubled(text, "'\\") + "'", text);
        return;
      case 'E':
        if (syntax_.escape_text) quote("E'" + escaped(text, "'\\") + "'", text);
        return;
      case '$': {
        if (!syntax_.dollar_quotes) return;
        const std::string tag = text.find('$') == std::string::npos ? "$$" : "$q_" + word_of(text, 'q') + "$";
        if (text.find(tag) == std::string::npos) quote(tag + text + tag, text);
        return;
      }
      case '-':
        std::replace(text.begin(), text.end(), '\n', ' ');
        sql_ += "-- " + text + "\n";
        return;
      case '#':
        std::replace(text.begin(), text.end(), '\n', ' ');
        if (syntax_.hash_comments) sql_ += "#" + text + "\n";
        return;
      case '/':
        std::erase(text, '/');
        sql_ += "/* " + text + " */ ";
        return;
      case 'w':
        return other(word_of(text, 'z'));
      case 'o':
        return other("(");
      case ':': {
        const std::string name = word_of(text, 'p');
        auto& names = statements_.back().names;
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
        return other(":" + name);
      }
      case ';':
        sql_ += ";";
        if (!statements_.back().is_empty) statements_.emplace_back();
        return;
      default:
        return;
    }
  }

  const std::string& sql() const { return sql_; }

  bool may_be_refused() const { return may_be_refused_; }

  std::vector<Expected> statements() const {
    auto result = statements_;
    if (result.back().is_empty) result.pop_back();
    return result;
  }

 private:
  void other(const std::string& sql) {
    sql_ += sql + " ";
    statements_.back().is_empty = false;
  }

  void quote(const std::string& sql, const std::string& value) {
    statements_.back().quoted.push_back(value);
    other(sql);
  }

  SqlSyntax syntax_;
  bool may_be_refused_ = false;
  std::string sql_;
  std::vector<Expected> statements_{1};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Fields fields(data, size);
  const auto dialect = dialect_named(fields.line());
  if (!dialect) return 0;
  Writer writer(dialect->syntax);
  while (!fields.empty()) {
    const auto line = fields.line();
    if (!line.empty()) writer.piece(line[0], std::string(line.substr(1)));
  }
  const auto expected = writer.statements();
  const auto script =
      unless_refused<UsageError>([&] { return parse_script(writer.sql(), dialect->sql, dialect->syntax); });
  if (!script) {
    claim(expected.empty() || writer.may_be_refused(), "SQL of known pieces is accepted");
    return 0;
  }
  claim(script->statements.size() == expected.size(),
        "only a semicolon outside of quotes and comments ends a statement");
  for (std::size_t i = 0; i < expected.size(); ++i) {
    claim(script->statements[i].names == expected[i].names,
          "only :name outside of quotes and comments is a placeholder");
    std::vector<std::string> quoted;
    for (const auto& token : lex(script->statements[i].text, dialect->syntax)) {
      if (token.kind == Token::Kind::quoted) quoted.push_back(value_of(token.text, dialect->syntax));
    }
    claim(quoted == expected[i].quoted, "quoted texts keep their values");
  }
  return 0;
}
