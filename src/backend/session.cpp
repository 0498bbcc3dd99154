#include "backend/session.hpp"

#include <fmt/format.h>

#include "backend/lease_end.hpp"
#include "backend/table_check.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

std::string Session::take_over_sql(const ClaimRequest& row, const ClaimedRow& seen) const {
  const Dialect& sql = dialect();
  const std::string is_free =
      seen.state == detail::RowState::consumed
          ? fmt::format("state = 'consumed' AND attempt_token = {}", sql.token(Token::of(seen.token)))
          : is_consuming_without_lease(sql);
  return fmt::format(
      "UPDATE {} SET state = '{}', attempt_token = {}, message_id = {}, content_hash = {}, lease_owner = NULL, "
      "lease_fence = {}, lease_expires_at = {}, attempts = NULL, result = NULL, consumed_at = {} "
      "WHERE {} AND {}",
      sql.table(consumed_message_table), to_string(initial_state_), sql.token(*row.token),
      sql.text_or_null(row.message_id), sql.bytes_or_null(row.content_hash),
      sql.greater("coalesce(lease_fence, 0) + 1", sql.now_in_microseconds()),
      has_lease(row) ? sql.now_plus(undecided_time) : "NULL", sql.now(), sql.is_key(row.consumer, row.business_key),
      is_free);
}

std::string Session::keep_sql(std::string_view consumer, std::string_view business_key) const {
  return fmt::format("UPDATE {} SET attempts = 1 - COALESCE(attempts, 0) WHERE {} AND state = 'consumed'",
                     dialect().table(consumed_message_table), dialect().is_key(consumer, business_key));
}

void refuse_open_transaction(Session& session) {
  if (!session.in_transaction()) return;
  throw Error(ErrorCode::transaction_open,
              "the session is inside a transaction, which is not txinbox's to end; commit it or roll it back first, or "
              "use another session");
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
