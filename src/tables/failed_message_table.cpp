#include "tables/failed_message_table.hpp"

#include <fmt/format.h>

#include "backend/table_check.hpp"
#include "backend/upsert.hpp"
#include "base/hex.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

std::string FailedMessageTable::table() const { return session_.dialect().table(backend::failed_message_table); }

std::string FailedMessageTable::is_key() const { return session_.dialect().is_key(consumer_, message_.business_key); }

std::string FailedMessageTable::bears(const Token& process) const {
  return fmt::format("{} AND running_token = {}", is_key(), session_.dialect().token(process));
}

int FailedMessageTable::add(const FailureEntry& failure) const {
  const backend::Dialect& sql = session_.dialect();
  const std::string error = sql.text(failure.error_class);
  const std::string text = sql.text_or_null(failure.text);
  const std::string id = sql.text_or_null(message_.message_id);
  const std::string payload = sql.bytes_or_null(failure.payload);
  const std::string update = fmt::format(
      "UPDATE {} SET attempts = attempts + 1, crashes = crashes + {}, message_id = {}, "
      "first_error = coalesce(first_error, {}), first_failed_at = coalesce(first_failed_at, {}), last_error = {}, "
      "last_failed_at = {}, error_text = {}, payload = coalesce({}, payload), running_token = NULL, "
      "running_since = NULL, running_alone = NULL WHERE {}",
      table(), failure.crashes, id, error, sql.now(), error, sql.now(), text, payload, is_key());
  const std::string insert = fmt::format(
      "INSERT INTO {} (consumer, business_key, message_id, attempts, crashes, first_error, first_failed_at, "
      "last_error, last_failed_at, error_text, payload) VALUES ({}, {}, {}, 1, {}, {}, {}, {}, {}, {}, {})",
      table(), sql.text(consumer_), sql.text(message_.business_key), id, failure.crashes, error, sql.now(), error,
      sql.now(), text, payload);
  backend::change_or_insert(session_, update, insert);
  const auto rows = session_.read(fmt::format("SELECT attempts FROM {} WHERE {}", table(), is_key()), 1);
  return rows.empty() ? 0 : static_cast<int>(backend::number_in(rows[0][0].value_or("")));
}

FailedMessageRow FailedMessageTable::find() const {
  const auto rows = session_.read(fmt::format("SELECT attempts, {}, running_alone, crashes FROM {} WHERE {}",
                                              session_.dialect().hex_token("running_token"), table(), is_key()),
                                  4);
  if (rows.empty()) return {};
  const backend::Row& row = rows.front();
  FailedMessageRow found{.attempts = static_cast<int>(backend::number_in(row[0].value_or(""))),
                         .has_crashes = row[3] != "0"};
  if (row[1] && !row[1]->empty()) found.marker = ProcessMarker{from_hex(*row[1]), row[2] == "1"};
  return found;
}

void FailedMessageTable::write_marker(const Token& process, bool exclusive) const {
  const backend::Dialect& sql = session_.dialect();
  const std::string token = sql.token(process);
  const int alone = exclusive ? 1 : 0;
  backend::change_or_insert(
      session_,
      fmt::format("UPDATE {} SET running_token = {}, running_since = {}, running_alone = {} WHERE {}", table(), token,
                  sql.now(), alone, is_key()),
      fmt::format(
          "INSERT INTO {} (consumer, business_key, message_id, attempts, crashes, running_token, running_since, "
          "running_alone) VALUES ({}, {}, {}, 0, 0, {}, {}, {})",
          table(), sql.text(consumer_), sql.text(message_.business_key), sql.text_or_null(message_.message_id), token,
          sql.now(), alone));
}

bool FailedMessageTable::reset(bool keep_marker) const {
  return session_.execute(fmt::format("UPDATE {} SET attempts = 0, crashes = 0{} WHERE {}", table(),
                                      keep_marker ? "" : ", running_token = NULL", is_key())) > 0;
}

std::string FailedMessageTable::clear_marker_sql(const Token& process) const {
  return fmt::format("UPDATE {} SET running_token = NULL, running_since = NULL, running_alone = NULL WHERE {}", table(),
                     bears(process));
}

std::string FailedMessageTable::delete_marker_sql(const Token& process) const {
  return fmt::format("DELETE FROM {} WHERE {} AND attempts = 0", table(), bears(process));
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
