#include "support/schema_tools.hpp"

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <soci/soci.h>
#include <txinbox/schema.hpp>

#include "backend/postgresql/native.hpp"
#include "backend/script.hpp"
#include "soci_adapter/soci_connection.hpp"
#include "support/source_files.hpp"

namespace txinbox::test {
namespace {

template <typename F>
std::optional<Refusal> refusal_of(const F& call) {
  try {
    call();
  } catch (const Error& e) {
    return Refusal{e.code(), e.what()};
  }
  return std::nullopt;
}

}  // namespace

std::string migrations_folder() { return (source_folder() / "migrations" / database()).string(); }

std::vector<std::string> migration_files() {
  std::vector<std::string> files;
  for (const Migration& each : migrations(database())) {
    files.push_back(migrations_folder() + "/V" + std::to_string(each.version) + "__" + each.name + ".sql");
  }
  return files;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (text.empty()) throw std::runtime_error("there is no " + path);
  return text;
}

std::string all_migrations() {
  std::string all;
  for (const std::string& file : migration_files()) all += text_of(file);
  return all;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const auto at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("not in the migration: " + std::string(from));
  return text.replace(at, from.size(), to);
}

std::string with_column(std::string migration, std::string_view name, std::string_view definition) {
  const auto begin = migration.find("\n  " + std::string(name) + " ");
  if (begin == std::string::npos) throw std::runtime_error("not a column of the migration: " + std::string(name));
  const auto end = migration.find('\n', begin + 1);
  const auto line =
      definition.empty() ? std::string() : "\n  " + std::string(name) + " " + std::string(definition) + ",";
  return migration.replace(begin, end - begin, line);
}

void run_statements(const TestDatabase& db, const std::string& script) {
  if (on_postgresql()) {
    const auto sql = db.session();
    backend::exec(backend::postgresql_native(*backend::connection_of(*sql)), script);
    return;
  }
  for (const std::string& statement : backend::statements_of(script)) db.run(statement);
}

std::optional<Refusal> refusal_by_verify(const TestDatabase& db) {
  return refusal_of([&] { verify(*db.session()); });
}

std::optional<Refusal> refusal_by_migrate(const TestDatabase& db) {
  return refusal_of([&] { migrate(*db.session()); });
}

std::vector<Finding> findings_about(soci::session& sql, std::string_view subject) {
  auto findings = diagnose(sql);
  std::erase_if(findings, [&](const Finding& f) { return f.subject != subject; });
  return findings;
}

std::vector<Finding> findings_beyond_clean_server(const TestDatabase& db) {
  auto findings = diagnose(db.pool(1).acquire());
  const auto is_usual = [](const Finding& f) {
    return f.severity == Severity::note && f.subject == "auto_increment_increment";
  };
  if (on_galera()) std::erase_if(findings, is_usual);
  return findings;
}

bool has_table(const TestDatabase& db, const std::string& name) {
  return db.number(here<std::string>(
             "select count(*) from sqlite_master where type = 'table' and name = '" + name + "'",
             "select count(*) from information_schema.tables where table_schema = database() and table_name = '" +
                 name + "'",
             "select count(*) from pg_tables where schemaname = current_schema() and tablename = '" + name + "'")) > 0;
}

Ran run_program(const std::string& command_line) {
  FILE* pipe = popen((command_line + " 2>&1").c_str(), "r");  // NOLINT(cert-env33-c)
  if (pipe == nullptr) throw std::runtime_error("popen failed");
  Ran ran{};
  std::array<char, 4096> buffer{};
  while (const auto count = std::fread(buffer.data(), 1, buffer.size(), pipe)) ran.output.append(buffer.data(), count);
  const int status = pclose(pipe);
  ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return ran;
}

std::string shell_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string remedy_in(const std::string& text, const std::string& subject) {
  const auto finding = text.find("] " + subject + ": ");
  if (finding == std::string::npos) return "";
  const int next = std::stoi(text.substr(text.rfind('[', finding) + 1)) + 1;
  const auto remedy = text.find("; remedy: ", finding);
  return text.substr(remedy + 10, text.find(" [" + std::to_string(next) + "] ", remedy) - remedy - 10);
}

std::ptrdiff_t findings_in(const std::string& text) {
  std::ptrdiff_t count = 0;
  for (auto at = text.find("; remedy: "); at != std::string::npos; at = text.find("; remedy: ", at + 1)) ++count;
  return count;
}

}  // namespace txinbox::test
