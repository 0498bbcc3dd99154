#include "tables/failure_record.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <txinbox/error.hpp>
#include <txinbox/result.hpp>

#include "backend/error_classification.hpp"
#include "backend/table_check.hpp"
#include "backend/upsert.hpp"
#include "base/utf8.hpp"
#include "message/content_hash.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

/// As hexadecimal digits it is to fit into the packets that servers take.
constexpr std::size_t most_payload = 4UL * 1024 * 1024;

/// Of an error's class and of its text.
constexpr std::size_t most_class = 255;
constexpr std::size_t most_text = 4096;

/// Cut to what is kept, in characters that every database takes.
std::string storable(std::string text, std::size_t most) {
  text.resize(std::min(text.size(), most));
  const bool ascii = find_invalid_utf8(text) != std::string_view::npos;
  for (char& c : text) {
    if (c == '\0' || (ascii && static_cast<unsigned char>(c) >= 0x80)) c = '?';
  }
  return text;
}

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return storable(e.what(), most_text);
  } catch (...) {
    return {};
  }
}

std::string payload_of(const Message& message) {
  return message.payload.size() <= most_payload ? message.payload : std::string();
}

}  // namespace

bool is_failure(const std::exception_ptr& error) noexcept {
  return !is_transient(error) && !is_environment_error(error) && !has_error_code(error, ErrorCode::stopped) &&
         !has_error_code(error, ErrorCode::retry_later) && action_for(error) != Action::stop;
}

bool is_rejected(const std::exception_ptr& error) noexcept { return has_error_code(error, ErrorCode::rejected); }

bool is_lease_lost(const std::exception_ptr& error) noexcept { return has_error_code(error, ErrorCode::lease_lost); }

int FailureRecord::count(const Message& message, const std::exception_ptr& error, bool keep_error_text) const {
  return count(message, {storable(error_class(error), most_class), keep_error_text ? text_of(error) : std::string()});
}

int FailureRecord::count_death(const Message& message) const {
  return count(message, {.error_class = "process died", .text = {}, .deaths = 1});
}

int FailureRecord::count(const Message& message, const Failure& failure) const {
  const backend::Dialect& sql = session_.dialect();
  const std::string table = sql.table(backend::failed_message_table);
  const std::string key = sql.is_key(consumer_, message.business_key);
  const std::string error = sql.text(failure.error_class);
  const std::string text = sql.text_or_null(failure.text);
  const std::string id = sql.text_or_null(message.message_id);
  const std::string payload = sql.bytes_or_null(payload_of(message));
  const std::string update = fmt::format(
      "UPDATE {} SET attempts = attempts + 1, deaths = deaths + {}, message_id = {}, first_error = "
      "coalesce(first_error, {}), first_failed_at = coalesce(first_failed_at, {}), last_error = {}, last_failed_at = "
      "{}, error_text = {}, "
      "payload = coalesce({}, payload), running_token = NULL, running_since = NULL, running_alone = NULL WHERE {}",
      table, failure.deaths, id, error, sql.now(), error, sql.now(), text, payload, key);
  const std::string insert = fmt::format(
      "INSERT INTO {} (consumer, business_key, message_id, attempts, deaths, first_error, first_failed_at, "
      "last_error, "
      "last_failed_at, error_text, payload) VALUES ({}, {}, {}, 1, {}, {}, {}, {}, {}, {}, {})",
      table, sql.text(consumer_), sql.text(message.business_key), id, failure.deaths, error, sql.now(), error,
      sql.now(), text, payload);
  backend::change_or_insert(session_, update, insert);
  const auto rows = session_.read(fmt::format("SELECT attempts FROM {} WHERE {}", table, key), 1);
  return rows.empty() ? 0 : static_cast<int>(backend::number_in(rows[0][0].value_or("")));
}

bool FailureRecord::park(const Message& message) const {
  const backend::Dialect& sql = session_.dialect();
  const ContentHash hash(message.content);
  return backend::try_insert(
      session_,
      fmt::format(
          "INSERT INTO {} (consumer, business_key, message_id, content_hash, state, attempt_token, consumed_at) "
          "VALUES ({}, {}, {}, {}, 'parked', {}, {})",
          sql.table(backend::consumed_message_table), sql.text(consumer_), sql.text(message.business_key),
          sql.text_or_null(message.message_id), sql.bytes_or_null(hash.bytes()), sql.token(Token::random()),
          sql.now()));
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
