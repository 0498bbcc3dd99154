#include <txinbox/operations.hpp>

#include <optional>

#include <txinbox/error.hpp>

#include "backend/connection_access.hpp"
#include "base/interruptible_sleep.hpp"
#include "message/erased_key.hpp"
#include "message/key.hpp"
#include "pool/inbox_session.hpp"
#include "tables/audit_table.hpp"
#include "tables/erased_message_table.hpp"
#include "tables/failed_message_table.hpp"
#include "tables/lease_table.hpp"
#include "types/enum_names.hpp"
#include "types/row_state.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

constexpr detail::EnumNames<EraseOutcome, EraseOutcome::torn> erase_outcome_names("erased", "not_found", "running",
                                                                                  "torn");

/// The erasure of some messages of one consumer.
class Erasure {
 public:
  Erasure(const backend::ConnectionPtr& connection, std::string_view consumer, const std::optional<OperatorAction>& by,
          bool no_consumer_runs)
      : session_(connection, by),
        consumer_(consumer),
        by_(by),
        no_consumer_runs_(no_consumer_runs),
        table_(*session_, consumer) {}

  /// Adds the erased key.
  EraseOutcome add(const std::string& key) {
    const bool added = run(by_, key, [&] {
      if (!table_.add(key, no_consumer_runs_)) return false;
      table_.remove_traces(key);
      return true;
    });
    has_added_ = has_added_ || added;
    if (added) return EraseOutcome::erased;
    const EraseOutcome outcome = outcome_of_unchanged(key);
    // The row of the key can have been removed before, by a purge or `forget`.
    const bool had_traces = outcome == EraseOutcome::not_found && run(by_, key, [&] { return remove_all_traces(key); });
    return had_traces ? EraseOutcome::erased : outcome;
  }

  bool has_added() const noexcept { return has_added_; }

  /// Removes the row of the key itself. It removes the traces again: a delivery that ran during `add` can have failed
  /// since then.
  EraseOutcome complete(const std::string& key) {
    const std::optional<OperatorAction> recorded_before;
    run(recorded_before, key, [&] {
      const bool had_row = table_.remove(key);
      return remove_all_traces(key) || had_row;
    });
    return find(key) ? EraseOutcome::running : EraseOutcome::erased;
  }

 private:
  template <class Step>
  bool run(const std::optional<OperatorAction>& by, const std::string& key, const Step& step) {
    const std::string erased_key = detail::erased_key(consumer_, key);
    const detail::AuditEntry entry{.by = by, .action = "erase", .consumer = consumer_, .business_key = erased_key};
    return detail::change_with_audit(*session_, entry, step);
  }

  bool remove_all_traces(const std::string& key) {
    const bool had_traces = table_.remove_traces(key);
    return table_.replace_in_audit(key) || had_traces;
  }

  std::optional<backend::ClaimedRow> find(const std::string& key) {
    const Message message{.business_key = key};
    return detail::LeaseTable(*session_, consumer_, message).find();
  }

  EraseOutcome outcome_of_unchanged(const std::string& key) {
    if (const auto row = find(key)) {
      return row->state == detail::RowState::torn ? EraseOutcome::torn : EraseOutcome::running;
    }
    const Message message{.business_key = key};
    if (detail::FailedMessageTable(*session_, consumer_, message).find().marker) return EraseOutcome::running;
    return find(detail::erased_key(consumer_, key)) ? EraseOutcome::erased : EraseOutcome::not_found;
  }

  detail::InboxSession session_;
  const std::string_view consumer_;
  const std::optional<OperatorAction>& by_;
  const bool no_consumer_runs_;
  const detail::ErasedMessageTable table_;
  bool has_added_ = false;
};

}  // namespace

std::string_view to_string(EraseOutcome outcome) noexcept { return erase_outcome_names[outcome]; }

std::vector<EraseOutcome> erase(ConnectionRef connection, std::string_view consumer,
                                std::span<const std::string> business_keys, const OperatorAction& by,
                                const EraseOptions& options) {
  detail::check_consumer(consumer);
  for (const std::string& key : business_keys) detail::check_message({.business_key = key});
  const std::optional audited(by);
  Erasure erasure(detail::ConnectionAccess::of(connection), consumer, audited, options.no_consumer_runs);
  std::vector<EraseOutcome> outcomes;
  outcomes.reserve(business_keys.size());
  for (const std::string& key : business_keys) outcomes.push_back(erasure.add(key));
  if (erasure.has_added() && !options.no_consumer_runs && !detail::sleep_for(detail::erasure_wait, options.stop)) {
    throw Error(ErrorCode::stopped, "the erasure is not complete; call it again with the same keys");
  }
  for (std::size_t i = 0; i < business_keys.size(); ++i) {
    if (outcomes[i] == EraseOutcome::erased) outcomes[i] = erasure.complete(business_keys[i]);
  }
  return outcomes;
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
