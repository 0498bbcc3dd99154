#include "tables/pause_table.hpp"

#include <array>

#include <fmt/format.h>

#include "backend/table_check.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

std::string is_paused(const backend::Dialect& sql) {
  return fmt::format("(resumes_at IS NULL OR resumes_at > {})", sql.now());
}

void PauseTable::set(std::string_view consumer, const OperatorAction& by,
                     std::optional<std::chrono::seconds> duration) const {
  constexpr std::array<std::string_view, 4> columns{"paused_at", "resumes_at", "reason", "actor"};
  const backend::Dialect& sql = session_.dialect();
  session_.execute(fmt::format(
      "INSERT INTO {} (consumer, paused_at, resumes_at, reason, actor) VALUES ({}, {}, {}, {}, {}){}",
      sql.table(backend::pause_table), sql.text(consumer), sql.now(), duration ? sql.now_plus(*duration) : "NULL",
      sql.text(by.reason), sql.text(by.actor), sql.update_existing("consumer", columns)));
}

bool PauseTable::remove(std::string_view consumer) const {
  const backend::Dialect& sql = session_.dialect();
  return session_.execute(fmt::format("DELETE FROM {} WHERE consumer = {} AND {}", sql.table(backend::pause_table),
                                      sql.text(consumer), is_paused(sql))) > 0;
}

bool PauseTable::contains(std::string_view consumer) const {
  const backend::Dialect& sql = session_.dialect();
  const std::string text = fmt::format("SELECT 1 FROM {} WHERE consumer = {} AND {}", sql.table(backend::pause_table),
                                       sql.text(consumer), is_paused(sql));
  return !session_.read(text, 1).empty();
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
