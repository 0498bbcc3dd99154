#pragma once

#include <array>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "backend/postgresql/native.hpp"
#include "backend/postgresql/pipeline.hpp"
#include "backend/postgresql/result_watch.hpp"
#include "backend/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// Returns the statement of `purge_some`.
std::string postgresql_purge_sql(const Dialect&, const PurgeBatch&, int server_version);

/// The inbox on one PostgreSQL connection.
///
/// The guard is a deferred constraint trigger on the claim, or on one claim of a batch. It refuses every commit except
/// that of `commit`. A savepoint is a second guard, in case the trigger was dropped. Statements that can be sent in one
/// round trip use one pipeline. A pool's connection keeps the statements of a delivery prepared, and a caller's
/// connection those that the server would have to plan.
///
/// session.cpp handles the settings. claim.cpp and transaction.cpp handle the guarded transaction.
/// single_statements.cpp runs other statements. purge.cpp removes old rows.
class PostgresqlSession final : public Session {
 public:
  PostgresqlSession(ConnectionPtr, Ownership);

  void configure(const PoolOptions&) override;
  void remember_settings() override;
  void use_schema(const std::string&) override;
  std::vector<Problem> unsafe_settings() override;
  void refuse_other_inbox() override;
  void lend() override;
  bool reset() noexcept override;
  bool intact() noexcept override;

  bool in_transaction() override;
  void begin() override;
  ClaimReply claim(const ClaimRequest&) override;
  bool take_over(const ClaimRequest&, const ClaimedRow&) override;
  std::vector<ClaimReply> begin_and_claim_all(std::span<const ClaimRequest>) override;
  bool keeps_statements() const noexcept override { return pooled_ && is_direct_; }
  bool guard_likely_intact() noexcept override;
  bool confirm(std::span<const ClaimToCommit>) override;
  CommitStatus commit(std::span<const ClaimToCommit>, std::span<const std::string> writes) override;
  bool may_have_committed() const noexcept override { return may_have_committed_; }
  bool may_have_foreign_commit() const noexcept override { return pooled_ && watched_foreign_commit(native()); }
  std::optional<std::string> code_of_handler_error() noexcept override;
  RollbackStatus roll_back() noexcept override;

  bool reads_latest_commits() override;
  bool verify_guard() override;
  void savepoint() override;
  bool release_savepoint(const ClaimToCommit*) override;
  bool rollback_to_savepoint() noexcept override;

  std::size_t execute(const std::string& sql) override;
  bool try_run_kept(const KeptStatement&, std::span<const Parameter>) override;
  std::size_t change(const std::string& sql) override;
  Changed change_kept(const KeptStatement&, std::span<const Parameter>) override;
  std::vector<Row> read(const std::string& sql, std::size_t columns) override;
  std::vector<Row> read_kept(const KeptStatement&, std::span<const Parameter>, std::size_t columns) override;
  PurgeReply purge_some(const PurgeBatch&) override;

 protected:
  std::optional<ClaimedRow> find_committed(const ClaimRequest&) override;
  ClaimReply open_and_claim(const ClaimRequest&) override;

 private:
  /// A statement that every delivery runs.
  struct Statement {
    std::string name;  ///< The name of the prepared statement. Empty if it is not prepared.
    std::string sql;
  };

  PGconn* native() const noexcept { return native_handle<PGconn>(); }
  PGconn* connection();
  void name_statements();
  void name_statements_of_caller();
  void prepare_statements();
  void prepare_statements_of_caller();

  /// The statements that the server plans. A caller's connection keeps only these prepared.
  std::array<Statement*, 6> planned_statements() noexcept {
    return {&claim_, &claim_all_, &existing_, &allow_commit_, &allow_all_, &same_inbox_};
  }
  std::string if_there_sql(std::string_view columns) const;
  void add(PostgresqlPipeline&, const Statement&, std::span<const PostgresqlValue> = {}) const;
  std::string begin_sql() const { return refuses_writes_ ? "BEGIN READ WRITE" : "BEGIN"; }
  void require_begun(const std::vector<PostgresqlResult>&) const;
  void require_same_inbox(const PostgresqlResult&) const;
  Statement kept(const KeptStatement&);

  PostgresqlResult change_with(const std::string& sql);

  enum class Access { read, write };
  std::vector<PostgresqlResult> run_alone(Access, const Statement&, std::span<const PostgresqlValue>);
  PostgresqlResult result_of(Access, std::vector<PostgresqlResult>);
  PostgresqlResult run_kept(Access, const KeptStatement&, std::span<const Parameter>);
  std::string store_sql(const ClaimToCommit&) const;
  std::vector<PostgresqlResult> run(const std::function<void(PostgresqlPipeline&)>& fill);
  PostgresqlResult run_on_savepoint(const std::string& sql);
  bool runs_on_savepoint(const std::string& sql);
  void allow_commit(PostgresqlPipeline&, std::span<const ClaimToCommit>, bool gives_role_back) const;
  void add_if_there(PostgresqlPipeline&, const Statement&, std::span<const ClaimToCommit>) const;
  PostgresqlResult open_with(const std::function<void(PostgresqlPipeline&)>& add_claim, bool waits = true);
  std::vector<PostgresqlResult> ask_existing(const ClaimRequest&, bool then_roll_back);
  std::optional<ClaimedRow> existing_in(const std::vector<PostgresqlResult>&, std::size_t sent);
  bool takes_role() const noexcept { return pooled_ && (takes_role_ || watched_setting(native())); }
  bool settings_are_remembered(const PGresult* asked) noexcept;
  bool settings_restored(const std::vector<PostgresqlResult>&);

  const bool pooled_;
  int process_id_ = 0;  ///< Pool: the number of the server's process that was configured.
  std::string table_ = "txinbox_consumed_message";
  std::string restore_;                  ///< Pool: a statement that restores the remembered settings.
  std::vector<std::string> remembered_;  ///< Pool: the values of the remembered settings.
  bool is_direct_ = false;               ///< Pool: there is no pooler between the client and the server.
  bool refuses_writes_ = false;          ///< Pool: the session is read-only outside our transactions.
  std::string role_;                     ///< Pool: the remembered role, quoted.
  bool takes_role_ = false;      ///< Pool: each commit takes this role, because a handler has changed it unseen.
  std::string lends_read_only_;  ///< Pool: whether a user's own transactions are read-only: on or off.
  bool prepared_ = false;        ///< The statements are prepared on this connection.
  bool keeps_prepared_ = true;
  bool may_have_committed_ = false;
  int statement_generation_ = 0;
  std::map<const KeptStatement*, std::string> kept_;  ///< Pool: the name of each statement that is prepared.
  Statement begin_, savepoint_, claim_, claim_all_, existing_, release_, own_role_, allow_commit_, allow_all_, commit_,
      settings_, no_wait_, wait_again_;
  Statement same_inbox_;  ///< A caller's session: whether its search_path still finds the inbox of `use_schema`.
};

/// The column that a statement selects to allow the trigger to commit the claims with the token $1.
inline constexpr std::string_view allowing_column = "pg_catalog.set_config('txinbox.commit_token', $1, true)";

/// Returns a token as the server writes it, for the settings that the trigger of V1__inbox.sql compares.
std::string uuid_of(const Token&);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
