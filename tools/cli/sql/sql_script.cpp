#include "cli/sql/sql_script.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "cli/sql/sql_lexer.hpp"
#include "console/usage_error.hpp"

namespace txinbox::cli {
namespace {

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

[[noreturn]] void refuse(const Token& token, const std::string& why) {
  throw UsageError(fmt::format("SQL line {}: {}", token.line, why));
}

// Such statements are refused before the first line, with a remedy. If something else ends the transaction, for example
// a procedure that commits, the guard of the transaction notices it for each message.
void check_keeps_transaction(const std::vector<Token>& tokens, const UserSql& database) {
  std::vector<std::string> words;
  for (const auto& token : tokens) {
    if (token.kind == Token::Kind::word) words.push_back(upper(token.text));
  }
  if (words.empty()) return;
  const std::string& verb = words[0];
  const bool to_savepoint = verb == "ROLLBACK" && std::ranges::find(words, "TO") != words.end();
  const bool prepares_transaction = verb == "PREPARE" && words.size() > 1 && words[1] == "TRANSACTION";

  constexpr std::array<std::string_view, 6> control{"BEGIN", "START", "COMMIT", "ROLLBACK", "END", "ABORT"};
  if ((std::ranges::find(control, verb) != control.end() && !to_savepoint) || prepares_transaction) {
    refuse(tokens.front(),
           fmt::format("{} would end the transaction that the message is consumed in; leave it out, txinbox begins and "
                       "commits by itself (bodies with BEGIN … END are not supported)",
                       verb));
  }
  if (const std::string why = database.refusal(words); !why.empty()) refuse(tokens.front(), why);
}

/// Collects the names of all statements, without repetition.
class Names {
 public:
  explicit Names(std::vector<std::string>& names) : names_(names) {}

  std::size_t number_of(const std::string& name) {
    const auto at = static_cast<std::size_t>(std::ranges::find(names_, name) - names_.begin());
    if (at == names_.size()) names_.push_back(name);
    return at;
  }

 private:
  std::vector<std::string>& names_;
};

// The text of one statement. Each sequence of white space becomes one blank.
Statement build(const std::vector<Token>& tokens, Names names) {
  Statement statement;
  auto& pieces = statement.sql.pieces;
  pieces.emplace_back();
  const auto append = [&](std::string_view text) {
    statement.text += text;
    pieces.back() += text;
  };
  for (const auto& token : tokens) {
    if (token.kind == Token::Kind::space) {
      // 5--# is "5 - -" and a comment that begins with #. A blank in place of this comment would make -- begin a
      // comment.
      if (statement.text.ends_with("--")) {
        append("/**/");
      } else if (!statement.text.ends_with(' ')) {
        append(" ");
      }
    } else if (token.kind == Token::Kind::placeholder) {
      statement.text += ":" + token.text;
      if (std::ranges::find(statement.names, token.text) == statement.names.end()) {
        statement.names.push_back(token.text);
      }
      statement.sql.values.push_back(names.number_of(token.text));
      pieces.emplace_back();
    } else {
      append(token.text);
    }
  }
  return statement;
}

}  // namespace

bool Script::uses(std::string_view name) const { return std::find(names.begin(), names.end(), name) != names.end(); }

Script parse_script(std::string_view sql, const UserSql& database, const SqlSyntax& syntax) {
  if (sql.find('\0') != std::string_view::npos) throw UsageError("the SQL contains a NUL character");
  Script script;
  std::vector<Token> tokens;
  auto finish = [&] {
    while (!tokens.empty() && tokens.back().kind == Token::Kind::space) tokens.pop_back();
    if (tokens.empty()) return;
    check_keeps_transaction(tokens, database);
    script.statements.push_back(build(tokens, Names(script.names)));
    tokens.clear();
  };
  for (auto& token : lex(sql, syntax)) {
    if (token.kind == Token::Kind::semicolon) {
      finish();
    } else if (!tokens.empty() || token.kind != Token::Kind::space) {
      tokens.push_back(std::move(token));
    }
  }
  finish();
  if (script.statements.empty()) throw UsageError("the SQL contains no statement");
  return script;
}

bool is_row_statement(std::string_view statement) {
  std::string verb;
  for (char c : statement) {
    if (std::isalpha(static_cast<unsigned char>(c)) == 0) break;
    verb += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  constexpr std::array<std::string_view, 6> verbs{"INSERT", "UPDATE", "DELETE", "SELECT", "WITH", "REPLACE"};
  return std::find(verbs.begin(), verbs.end(), verb) != verbs.end();
}

}  // namespace txinbox::cli
