#include "support/old_library.hpp"

#include <stdexcept>

#include <fmt/format.h>
#include <txinbox/result.hpp>
#include <txinbox/schema.hpp>

#include "backend/failure.hpp"
#include "backend/registry.hpp"
#include "base/hex.hpp"
#include "base/token.hpp"
#include "message/content_hash.hpp"
#include "support/schema_tools.hpp"
#include "support/source_files.hpp"

namespace txinbox::test {
namespace {

std::string bytes(const std::string& hex) { return on_postgresql() ? "'\\x" + hex + "'" : "x'" + hex + "'"; }

std::string bytes_of(std::string_view value) { return bytes(detail::to_hex(value)); }

std::string random_token() {
  const std::string hex = detail::Token::random().hex();
  return on_postgresql() ? "'" + hex + "'" : "x'" + hex + "'";
}

std::string now() {
  return here<std::string>("strftime('%Y-%m-%d %H:%M:%f', 'now')", "utc_timestamp(6)", "clock_timestamp()");
}

std::string row(int consumer, int number) {
  using Kind = OldDatabase::Kind;
  const Kind kind = OldDatabase::kind_of(number);
  const bool content = kind == Kind::with_content;
  const char* state = kind == Kind::torn ? "torn" : kind == Kind::parked ? "parked" : "consumed";
  return fmt::format("('{}', '{}', {}, {}, '{}', {}, {}, {})", OldDatabase::consumer(consumer),
                     OldDatabase::key(number), content ? "'m1'" : "null",
                     content ? bytes_of(detail::ContentHash(OldDatabase::content(number)).bytes()) : "null", state,
                     random_token(), content ? bytes_of(OldDatabase::result(number)) : "null", now());
}

/// One attempt of `consume_as_v1`.
bool try_as_v1(soci::session& sql, const std::string& consumer, const std::string& key) {
  if (on_mysql()) sql << "set transaction isolation level read committed";
  sql << here<std::string>("begin immediate", "begin", "begin isolation level read committed");
  try {
    sql << "insert into txinbox_consumed_message (consumer, business_key, message_id, content_hash, state, "
           "attempt_token, consumed_at) values ('" +
               consumer + "', '" + key + "', null, null, 'consumed', " + random_token() + ", " + now() + ")";
  } catch (const soci::soci_error& error) {
    // On a session without settings, SQLite's error is only "constraint". So the row decides.
    const backend::ErrorClass what = detail::Failure::current().error_class();
    if (what != backend::ErrorClass::duplicate_key && (!on_sqlite3() || backend::is_transient(what))) throw;
    sql << "rollback";
    std::string state = "no row";
    sql << "select state from txinbox_consumed_message where consumer = '" + consumer + "' and business_key = '" + key +
               "'",
        soci::into(state);
    if (state != "consumed") throw std::runtime_error("a duplicate whose row says '" + state + "'");
    return false;
  }
  sql << "insert into effect values ('" + key + "')";
  sql << "commit";
  return true;
}

}  // namespace

std::string file_before_0_1_0() {
  return (source_folder() / "tests/data/before_0.1.0" / (database() + ".sql")).string();
}

std::string upgrade_file() { return migrations_folder() + "/upgrade_to_0.1.0.sql"; }

OldDatabase::OldDatabase(OldSchema schema) : TestDatabase(Tables::none) {
  run_statements(*this,
                 schema == OldSchema::version_1 ? migrations(database()).front().sql : text_of(file_before_0_1_0()));
  run("create table effect (id varchar(255))");
  fill();
}

OldDatabase::Kind OldDatabase::kind_of(int row) {
  switch (row % 10) {
    case 6:
    case 7:
      return Kind::with_content;
    case 8:
      return Kind::torn;
    case 9:
      return Kind::parked;
    default:
      return Kind::plain;
  }
}

void OldDatabase::fill() const {
  constexpr int at_once = 500;
  for (int consumer = 0; consumer < consumers; ++consumer) {
    for (int from = 0; from < rows_each; from += at_once) {
      std::string rows;
      for (int i = from; i < from + at_once; ++i) rows += (rows.empty() ? "" : ", ") + row(consumer, i);
      run("insert into txinbox_consumed_message (consumer, business_key, message_id, content_hash, state, "
          "attempt_token, result, consumed_at) values " +
          rows);
    }
  }
  run("insert into txinbox_failed_message (consumer, business_key, attempts, first_error, first_failed_at, last_error, "
      "last_failed_at) select consumer, business_key, 3, 'std::runtime_error', consumed_at, 'std::runtime_error', "
      "consumed_at from txinbox_consumed_message where state = 'parked'");
}

std::string OldDatabase::old_contents() const {
  const auto sql = session();
  const auto hex = [](const std::string& column) {
    return "coalesce(" +
           here<std::string>("hex(" + column + ")", "hex(" + column + ")", "encode(" + column + ", 'hex')") + ", '-')";
  };
  const std::vector<std::string> columns{
      "consumer",
      "business_key",
      "coalesce(message_id, '-')",
      hex("content_hash"),
      "state",
      here<std::string>("hex(attempt_token)", "hex(attempt_token)", "cast(attempt_token as text)"),
      hex("result"),
      "coalesce(lease_owner, '-')",
      here<std::string>("consumed_at", "cast(consumed_at as char)", "cast(consumed_at as text)")};
  std::string row;
  for (const std::string& column : columns) {
    row += on_mysql() ? (row.empty() ? "concat(" : ", '|', ") : (row.empty() ? "" : " || '|' || ");
    row += column;
  }
  if (on_mysql()) row += ")";
  const soci::rowset<std::string> rows =
      sql->prepare << "select " + row + " from txinbox_consumed_message where business_key like 'old key %' order by 1";
  std::string all;
  for (const std::string& each : rows) all += each + "\n";
  return all;
}

bool consume_as_v1(soci::session& sql, const std::string& consumer, const std::string& key) {
  constexpr int patience = 1'000;
  for (int attempt = 1;; ++attempt) {
    try {
      return try_as_v1(sql, consumer, key);
    } catch (const soci::soci_error& error) {
      const bool again = backend::is_transient(detail::Failure::current().error_class()) && attempt < patience;
      try {
        sql << "rollback";
      } catch (const soci::soci_error&) {  // NOLINT(bugprone-empty-catch): SQLite's transaction has ended
      }
      if (!again) throw;
    }
  }
}

}  // namespace txinbox::test
