// SQL put together from pieces that are known: whatever a string, name or comment holds, it neither splits a
// statement nor makes a placeholder, and a string keeps its value.
//
// Input: the dialect's name, then a piece a line: its kind, a character, and its text, in which ~ is a line
// feed.

#include <algorithm>
#include <cctype>
#include <vector>

#include "cli/sql/sql_script.hpp"
#include "console/usage_error.hpp"
#include "dialects.hpp"
#include "fuzz.hpp"

using namespace txinbox::fuzz;
using namespace txinbox::cli;

namespace {

struct Expected {
  std::vector<std::string> names = {};   // of the placeholders, each once
  std::vector<std::string> quoted = {};  // what the strings and quoted names stand for
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

// What a quoted token of the result stands for.
std::string value_of(std::string_view token, const Dialect& dialect) {
  if (token.starts_with(' ')) token.remove_prefix(1);
  const bool escapes = token[0] == 'E';
  if (escapes) token.remove_prefix(1);
  const char quote = token[0] == '[' ? ']' : token[0];
  const bool is_string = quote == '\'' || (quote == '"' && !dialect.ansi_quotes);
  const bool backslash = escapes || (is_string && dialect.backslash_escapes);
  std::string value;
  for (std::size_t i = 1; i + 1 < token.size(); ++i) {
    if (token[i] == quote || (backslash && token[i] == '\\')) ++i;
    value += token[i];
  }
  return value;
}

class Writer {
 public:
  explicit Writer(const Dialect& dialect) : dialect_(dialect) {}

  void piece(char kind, std::string text) {
    std::replace(text.begin(), text.end(), '~', '\n');
    const bool on_mysql = dialect_.database == Database::mysql;
    const bool on_postgresql = dialect_.database == Database::postgresql;
    const char* const backslash = dialect_.backslash_escapes ? "'\\" : "'";
    if (is_misread(kind, text)) may_be_refused_ = true;
    switch (kind) {
      case 's':
        return quote("'" + doubled(text, backslash) + "'", text);
      case 'q':  // as 's', with \'
        return quote("'" + (dialect_.backslash_escapes ? escaped(text, "'\\") : doubled(text, "'")) + "'", text);
      case 'd': {
        const bool is_string = !dialect_.ansi_quotes && dialect_.backslash_escapes;
        return quote('"' + doubled(text, is_string ? "\"\\" : "\"") + '"', text);
      }
      case 'D':  // as 'd', with \"
        if (on_mysql && !dialect_.ansi_quotes && dialect_.backslash_escapes) {
          quote('"' + escaped(text, "\"\\") + '"', text);
        }
        return;
      case 'b':
        if (!on_postgresql) quote('`' + doubled(text, "`") + '`', text);
        return;
      case '[':
        std::erase(text, ']');
        if (dialect_.database == Database::sqlite3) quote('[' + text + ']', text);
        return;
      case 'e':
        if (on_postgresql) quote("E'" + doubled(text, "'\\") + "'", text);
        return;
      case 'E':
        if (on_postgresql) quote("E'" + escaped(text, "'\\") + "'", text);
        return;
      case '$': {
        if (!on_postgresql) return;
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
        if (on_mysql) sql_ += "#" + text + "\n";
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

  // SOCI knows no names in quotes on MySQL, and a backslash before a quote always; nothing takes NUL.
  bool is_misread(char kind, const std::string& text) const {
    if (text.find('\0') != std::string::npos) return true;
    if (dialect_.database != Database::mysql) return false;
    const bool is_name = kind == 'b' || (kind == 'd' && dialect_.ansi_quotes);
    if (is_name) return text.find_first_of(":'") != std::string::npos;
    return !dialect_.backslash_escapes && text.find('\\') != std::string::npos;
  }

  Dialect dialect_;
  bool may_be_refused_ = false;
  std::string sql_;
  std::vector<Expected> statements_{1};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Fields fields(data, size);
  const auto dialect = dialect_named(fields.line());
  if (!dialect) return 0;
  Writer writer(*dialect);
  while (!fields.empty()) {
    const auto line = fields.line();
    if (!line.empty()) writer.piece(line[0], std::string(line.substr(1)));
  }
  const auto expected = writer.statements();
  const auto script = unless_refused<UsageError>([&] { return parse_script(writer.sql(), *dialect); });
  if (!script) {
    claim(expected.empty() || writer.may_be_refused(), "SQL that SOCI can read is taken");
    return 0;
  }
  claim(script->statements.size() == expected.size(), "only semicolons outside of quotes and comments split");
  for (std::size_t i = 0; i < expected.size(); ++i) {
    claim(script->statements[i].names == expected[i].names, "only :name outside of quotes and comments is one");
    std::vector<std::string> quoted;
    for (const auto& token : lex(script->statements[i].text, *dialect)) {
      if (token.kind == Token::Kind::quoted) quoted.push_back(value_of(token.text, *dialect));
    }
    claim(quoted == expected[i].quoted, "quotes keep what they stand for");
  }
  return 0;
}
