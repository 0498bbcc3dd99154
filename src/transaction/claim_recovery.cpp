#include "transaction/claim_recovery.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <txinbox/error.hpp>

#include "backend/failure.hpp"
#include "tables/consumed_message_table.hpp"
#include "types/row_state.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

void ClaimRecovery::collect(GuardedTransaction& transaction) {
  std::vector<InsertedClaim> claims = transaction.take_unconfirmed_claims();
  const bool complete =
      std::ranges::any_of(claims, [](const InsertedClaim& c) { return c.progress == HandlerProgress::completed; });
  if (transaction.commit_in_doubt() || complete) in_doubt_.push_back(transaction.token());
  std::erase_if(claims, [](const InsertedClaim& c) { return c.progress == HandlerProgress::completed; });
  if (!claims.empty()) {
    unconfirmed_.push_back({.claims = std::move(claims),
                            .ended_at = std::chrono::steady_clock::now(),
                            .foreign_commit = transaction.may_have_foreign_commit()});
  }
}

Failure ClaimRecovery::abort_and_resolve(GuardedTransaction& transaction, SessionHandle& session,
                                         const Failure& failure) noexcept {
  transaction.roll_back();
  Failure explained = transaction.explain(failure);
  if (!transaction.session_usable()) explained = explained.as_lost_session();
  session.drop_locals();
  try {
    collect(transaction);
    if (!transaction.session_usable() || explained.is_fatal_to_session()) {
      session.discard();
    } else {
      resolve(session.backend());
      if (!session.backend().may_be_broken()) session.mark_clean();
    }
  } catch (...) {  // another session resolves the claims later
    if (Failure::current().is_fatal_to_session()) session.discard();
  }
  return explained;
}

void ClaimRecovery::resolve_on_new_session(SessionProvider& source) noexcept {
  if (unconfirmed_.empty() || !source.reconnects()) return;
  try {
    resolve(source.borrow({}).backend());
  } catch (...) {  // NOLINT(bugprone-empty-catch): documented
  }
}

/// Returns false if the claim is not in the table.
bool ClaimRecovery::resolve(backend::Session& session, const InsertedClaim& claim) {
  const ConsumedMessageTable table(session);
  if (claim.progress == HandlerProgress::not_started) {
    try {
      return table.delete_claim(claim.consumer, claim.business_key, claim.token);
    } catch (const DatabaseError&) {
      // The database user may lack the right to DELETE. Then mark the claim torn.
      const Failure failure = Failure::current();
      if (failure.is_transient() || failure.is_of_environment()) throw;
    }
  }
  if (!table.mark_torn(claim.consumer, claim.business_key, claim.token)) return false;
  add_torn(claim.business_key);
  return true;
}

/// A commit of any of these claims also commits the first one. So if the table does not contain the first claim, it
/// contains none. Only if the reply to an earlier statement was lost must every claim be checked: the first may already
/// be deleted.
void ClaimRecovery::resolve(backend::Session& session, Run& run) {
  const bool check_all = run.reply_lost;
  run.reply_lost = true;  // until all replies have arrived
  for (std::size_t i = 0; i < run.claims.size(); ++i) {
    if (resolve(session, run.claims[i])) run.found = true;
    if (!run.found && !check_all) break;
  }
  if (run.foreign_commit && (!run.found || run.inserting)) insert_torn(session, run);
  run.reply_lost = false;
}

/// The handler has rolled back the claims, and may have committed SQL after that. Another run could double this SQL.
void ClaimRecovery::insert_torn(backend::Session& session, Run& run) {
  const ConsumedMessageTable table(session);
  run.inserting = true;  // if a reply is lost, the next search finds the rows that were inserted until then
  for (const InsertedClaim& claim : run.claims) {
    if (claim.progress == HandlerProgress::not_started) continue;
    if (!table.insert_torn(claim.consumer, claim.business_key, claim.token)) continue;
    add_torn(claim.business_key);
    run.found = true;
  }
}

void ClaimRecovery::resolve(backend::Session& session) {
  if (unconfirmed_.empty()) return;
  session.catch_up();  // this session may be on another node than the session that committed a claim.
  for (Run& run : unconfirmed_) resolve(session, run);
  std::erase_if(unconfirmed_, &ClaimRecovery::is_resolved);
}

bool ClaimRecovery::is_unconfirmed(std::string_view business_key, const backend::ClaimedRow& row) const noexcept {
  if (row.state != RowState::consumed && row.state != RowState::torn) return false;
  return std::ranges::any_of(unconfirmed_, [&](const Run& run) {
    return run.claims.front().token.bytes() == row.token &&
           std::ranges::any_of(run.claims, [&](const InsertedClaim& c) { return c.business_key == business_key; });
  });
}

bool ClaimRecovery::record_torn(std::string_view business_key, const backend::ClaimedRow& row) {
  if (row.state != RowState::torn || !is_ours(row)) return false;
  add_torn(business_key);
  return true;
}

void ClaimRecovery::add_torn(std::string_view business_key) {
  if (std::ranges::find(ever_torn_, business_key) != ever_torn_.end()) return;
  ever_torn_.emplace_back(business_key);
  torn_.emplace_back(business_key);
}

void ClaimRecovery::resolve_visible(backend::Session& session) {
  const ConsumedMessageTable table(session);
  try {
    session.catch_up();
  } catch (const DatabaseError&) {
    return;
  }
  for (Run& run : unconfirmed_) {
    try {
      // As in `resolve`: without the first claim there is none, unless an earlier attempt may have deleted it.
      const std::span<const InsertedClaim> searched(run.claims.data(), run.reply_lost ? run.claims.size() : 1);
      const bool is_visible = std::ranges::any_of(searched, [&](const InsertedClaim& claim) {
        return table.has_claim(claim.consumer, claim.business_key, claim.token);
      });
      if (is_visible) resolve(session, run);
    } catch (const DatabaseError&) {  // NOLINT(bugprone-empty-catch): documented
    }
  }
  std::erase_if(unconfirmed_, &ClaimRecovery::is_resolved);
}

/// If an error came between two claims of a run, the claims after it are still in the table.
bool ClaimRecovery::is_resolved(const Run& run) noexcept { return run.found && !run.reply_lost; }

bool ClaimRecovery::is_undecided(const Run& run) noexcept {
  return std::ranges::any_of(run.claims, &InsertedClaim::undecided);
}

void ClaimRecovery::adopt_undecided(ClaimRecovery& other) {
  std::ranges::copy_if(other.unconfirmed_, std::back_inserter(unconfirmed_), &ClaimRecovery::is_undecided);
  std::erase_if(other.unconfirmed_, &ClaimRecovery::is_undecided);
}

void ClaimRecovery::drop_runs_before(std::chrono::steady_clock::time_point time) {
  std::erase_if(unconfirmed_, [&](const Run& run) { return run.ended_at < time; });
}

bool ClaimRecovery::is_ours(const backend::ClaimedRow& row) const noexcept {
  return std::ranges::any_of(in_doubt_, [&](const Token& token) { return token.bytes() == row.token; });
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
