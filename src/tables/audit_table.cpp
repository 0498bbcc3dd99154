#include "tables/audit_table.hpp"

#include <fmt/format.h>
#include <txinbox/error.hpp>

#include "backend/table_check.hpp"
#include "base/text.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

constexpr std::size_t max_actor = 255;
constexpr std::size_t max_reason = 1000;

void check_part(std::string_view what, std::string_view text, std::size_t min, std::size_t max) {
  const auto refuse = [&](std::string_view why) {
    throw Error(ErrorCode::invalid_argument, fmt::format("OperatorAction::{} {}", what, why));
  };
  if (text.size() < min) refuse("is empty");
  if (text.size() > max) refuse(fmt::format("has {} bytes; at most {} are allowed", text.size(), max));
  if (text.find('\0') != std::string_view::npos) refuse("holds a NUL byte");
  if (find_invalid_utf8(text) != std::string_view::npos) refuse("is not valid UTF-8");
}

}  // namespace

void check_operator_action(const OperatorAction& by) {
  check_part("actor", by.actor, 1, max_actor);
  check_part("reason", by.reason, 0, max_reason);
}

void add_audit_row(backend::Session& session, const AuditEntry& entry, std::size_t messages,
                   backend::TransactionUse use) {
  if (!entry.by) return;
  const backend::Dialect& sql = session.dialect();
  session.run(fmt::format("INSERT INTO {} (at, actor, action, consumer, business_key, messages, reason) "
                          "VALUES ({}, {}, {}, {}, {}, {}, {})",
                          sql.table(backend::audit_table), sql.now(), sql.text(entry.by->actor), sql.text(entry.action),
                          sql.text_or_null(entry.consumer), sql.text_or_null(entry.business_key), messages,
                          sql.text_or_null(entry.by->reason)),
              use);
}

bool change_with_audit(backend::Session& session, const AuditEntry& entry, const std::function<bool()>& change) {
  try {
    session.begin();
    if (!change()) {
      session.roll_back();
      return false;
    }
    add_audit_row(session, entry, 1, backend::TransactionUse::open);
    if (session.commit({}, {}) != backend::CommitStatus::committed) {
      throw Error(ErrorCode::transaction_lost,
                  "the transaction of an operator's change has ended; nothing was changed");
    }
    return true;
  } catch (...) {
    session.roll_back();
    throw;
  }
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
