#include "cli/sql/sql_script.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <fmt/format.h>

#include "cli/sql/soci_placeholders.hpp"
#include "console/usage_error.hpp"

namespace txinbox::cli {
namespace {

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

template <std::size_t N>
bool any_of(const std::string& word, const std::array<std::string_view, N>& list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

[[noreturn]] void refuse(const Token& token, const std::string& why) {
  throw UsageError(fmt::format("SQL line {}: {}", token.line, why));
}

// Refused up front, with the remedy. What is not caught here (a procedure that commits, say) the
// transaction's guard catches for each message.
void check_keeps_transaction(const std::vector<Token>& tokens, Database database) {
  std::vector<std::string> words;
  for (const auto& token : tokens) {
    if (token.kind == Token::Kind::word) words.push_back(upper(token.text));
  }
  if (words.empty()) return;
  const Token& first = tokens.front();
  const std::string& verb = words[0];
  const std::string second = words.size() > 1 ? words[1] : std::string();
  auto has = [&](std::string_view word) { return std::find(words.begin(), words.end(), word) != words.end(); };

  constexpr std::array<std::string_view, 6> control{"BEGIN", "START", "COMMIT", "ROLLBACK", "END", "ABORT"};
  const bool to_savepoint = verb == "ROLLBACK" && has("TO");
  if ((any_of(verb, control) && !to_savepoint) || (verb == "PREPARE" && second == "TRANSACTION") ||
      (database == Database::mysql && (verb == "XA" || (verb == "SET" && has("AUTOCOMMIT"))))) {
    refuse(first, fmt::format("{} would end the transaction that the message is consumed in; leave it out, txinbox "
                              "begins and commits by itself (bodies with BEGIN … END are not supported)",
                              verb));
  }
  constexpr std::array<std::string_view, 21> committing{
      "CREATE", "ALTER",  "DROP",    "TRUNCATE",  "RENAME", "GRANT", "REVOKE",
      "LOCK",   "UNLOCK", "ANALYZE", "OPTIMIZE",  "REPAIR", "CHECK", "FLUSH",
      "RESET",  "CACHE",  "INSTALL", "UNINSTALL", "CHANGE", "STOP",  "PURGE"};
  const bool executes_text = verb == "EXECUTE" && second == "IMMEDIATE";
  const bool sets_statement = verb == "SET" && (second == "STATEMENT" || second == "PASSWORD");
  if (database == Database::mysql && second != "TEMPORARY" &&
      (any_of(verb, committing) || executes_text || sets_statement)) {
    refuse(first,
           fmt::format("MariaDB and MySQL commit at {} or can, which would end the transaction that the message is "
                       "consumed in; run it beforehand",
                       verb));
  }
  if (database == Database::postgresql && verb == "COPY") {
    refuse(first, "COPY is not supported; write INSERT");
  }
}

// One statement's tokens as text, each run of space as one.
Statement build(const std::vector<Token>& tokens, const Dialect& dialect) {
  Statement statement;
  std::vector<std::pair<std::size_t, std::string>> placeholders;
  for (const auto& token : tokens) {
    if (token.kind == Token::Kind::space) {
      // A comment behind MySQL's 5--#: with a blank in its place it would begin another one there.
      if (statement.text.ends_with("--")) {
        statement.text += "/**/";
      } else if (!statement.text.ends_with(' ')) {
        statement.text += ' ';
      }
      continue;
    }
    if (token.kind == Token::Kind::placeholder) {
      placeholders.emplace_back(statement.text.size(), token.text);
      statement.text += ':';
      if (std::find(statement.names.begin(), statement.names.end(), token.text) == statement.names.end()) {
        statement.names.push_back(token.text);
      }
    }
    std::string_view text = token.text;
    const bool has_blank = statement.text.empty() || statement.text.ends_with(' ');
    if (has_blank && text.starts_with(' ')) text.remove_prefix(1);  // of a rewritten string
    statement.text += text;
  }
  if (dialect.database != Database::sqlite3 && soci_placeholders(statement.text, dialect.database) != placeholders) {
    refuse(tokens.front(),
           "in this statement, a colon or an apostrophe stands where SOCI's parser takes it for a placeholder or the "
           "begin of a string (in a quoted name, an optimizer hint, an array slice, or after a backslash); write the "
           "statement without it, or with the value bound by --bind");
  }
  return statement;
}

void number_values(Script& script) {
  for (auto& statement : script.statements) {
    for (const auto& name : statement.names) {
      const auto at = std::find(script.names.begin(), script.names.end(), name);
      statement.values.push_back(static_cast<std::size_t>(at - script.names.begin()));
      if (at == script.names.end()) script.names.push_back(name);
    }
  }
}

}  // namespace

bool Script::uses(std::string_view name) const { return std::find(names.begin(), names.end(), name) != names.end(); }

Script parse_script(std::string_view sql, const Dialect& dialect) {
  if (sql.find('\0') != std::string_view::npos) throw UsageError("the SQL holds a NUL character");
  Script script;
  std::vector<Token> tokens;
  auto finish = [&] {
    while (!tokens.empty() && tokens.back().kind == Token::Kind::space) tokens.pop_back();
    if (tokens.empty()) return;
    check_keeps_transaction(tokens, dialect.database);
    script.statements.push_back(build(tokens, dialect));
    tokens.clear();
  };
  for (auto& token : lex(sql, dialect)) {
    if (token.kind == Token::Kind::semicolon) {
      finish();
    } else if (!tokens.empty() || token.kind != Token::Kind::space) {
      tokens.push_back(std::move(token));
    }
  }
  finish();
  if (script.statements.empty()) throw UsageError("the SQL holds no statement");
  number_values(script);
  return script;
}

}  // namespace txinbox::cli
