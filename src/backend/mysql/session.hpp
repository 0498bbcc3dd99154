#pragma once

#include <array>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "backend/mysql/flavour.hpp"
#include "backend/mysql/many_keys.hpp"
#include "backend/mysql/native.hpp"
#include "backend/mysql/session_tracker.hpp"
#include "backend/mysql/statement.hpp"
#include "backend/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// The inbox on one connection to MariaDB or MySQL.
///
/// The guard is a savepoint. Autocommit is off while the savepoint exists. Otherwise, after a handler has ignored a
/// deadlock, each of its further statements would commit. On a server with compound statements (MariaDB), one of them
/// opens the transaction, and one closes it. On MySQL, two procedures do the same. The session keeps these statements
/// prepared. Single statements are for other servers, and on MySQL for a batch, a claim that does not wait, and a
/// caller's session without autocommit.
///
/// session.cpp handles the settings. claim.cpp, transaction.cpp, commit.cpp, savepoints.cpp, procedures.cpp and
/// caller_session.cpp handle the guarded transaction. single_statements.cpp runs other statements. purge.cpp removes
/// old rows.
class MysqlSession final : public Session {
 public:
  MysqlSession(ConnectionPtr, Ownership);
  ~MysqlSession() override;

  void configure(const PoolOptions&) override;
  void remember_settings() override;
  void use_schema(const std::string&) override;
  std::vector<Problem> unsafe_settings() override;
  void refuse_other_inbox() override;
  bool will_check_settings() noexcept override;
  bool reset() noexcept override;
  bool intact() noexcept override;

  bool in_transaction() override;
  void begin() override;
  ClaimReply claim(const ClaimRequest&) override;
  std::vector<ClaimReply> begin_and_claim_all(std::span<const ClaimRequest>) override;
  bool guard_likely_intact() noexcept override;
  bool confirm(std::span<const ClaimToCommit>) override;
  CommitStatus commit(std::span<const ClaimToCommit>, std::span<const std::string> writes) override;
  bool may_have_committed() const noexcept override { return commit_sent_; }
  bool may_have_foreign_commit() const noexcept override;
  std::optional<std::string> code_of_handler_error() noexcept override;
  RollbackStatus roll_back() noexcept override;

  bool verify_guard() override;
  void savepoint() override;
  bool release_savepoint(const ClaimToCommit*) override;
  bool rollback_to_savepoint() noexcept override;

  bool shows_commits_early() const noexcept override { return shows_commits_early_; }
  bool wait_until_durable(std::string_view consumer, std::string_view business_key) override;
  void catch_up() override;

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
  struct KeptReply {
    Changed changed;
    std::vector<MysqlRow> rows;
  };
  MysqlStatement* prepared_kept(const KeptStatement&);
  KeptReply run_kept(const KeptStatement&, std::span<const Parameter>);
  template <class Run>
  auto alone(const Run& run);

  /// A statement, and how many rows it must change.
  struct Confirmation {
    std::string sql;
    std::size_t rows;
  };

  struct PreparedClosing {
    MysqlStatement* statement = nullptr;
    std::vector<std::string_view> values = {};
  };

  MYSQL* native() const noexcept { return native_handle<MYSQL>(); }
  MYSQL* connection();
  bool is_configured_connection(MYSQL*) const noexcept;
  void set_settings(const PoolOptions&);
  void remember_role(std::span<const std::optional<std::string>> found);
  bool in_one_statement() const noexcept { return flavour_.compound_statements && (pooled_ || takes_compounds_); }
  bool opens_with_rows() const noexcept { return in_one_statement() && !flavour_.cluster; }
  bool calls_procedures() const noexcept {
    return flavour_.procedures && (pooled_ || (autocommit_ && takes_compounds_));  // they switch autocommit on
  }
  void prepare_statements();
  void prepare_procedures();
  std::optional<ClaimReply> call_begin_and_claim(const ClaimRequest&);
  std::optional<CommitStatus> call_confirm_and_commit(MYSQL*, const ClaimToCommit&);
  static ClaimReply claim_reply(MysqlReply);
  std::string on_duplicate(const std::string& key) const;
  void remember_settings_of_caller(const MysqlRow& settings);
  bool may_know_settings() const noexcept;
  bool knows_same_database() const noexcept;
  bool has_known_settings();
  void check_settings_of_caller();
  void find_cluster();
  std::optional<ClaimedRow> find_committed_of_caller(const ClaimRequest&);
  ClaimReply open_and_claim_of_caller(const ClaimRequest&);
  bool refuses_compounds(unsigned error) noexcept;
  std::string begin_sql_of_caller(const std::string& declarations, const std::string& statements) const;
  bool prepare_statements_of_caller();
  unsigned run_opening_of_caller(const ClaimRequest&, MysqlReply&);
  std::optional<unsigned> try_begin_of_caller(const std::function<unsigned(MysqlReply&)>& run, MysqlReply&);
  bool begin_of_caller(const std::string& statements, MysqlReply&);
  std::optional<bool> run_together_on_savepoint(const std::string& statements);
  std::string closing_sql(const std::string& statements) const;

  /// Returns what follows COMMIT or ROLLBACK in a compound statement.
  std::string end_of_transaction() const {
    if (pooled_) return "; " + end_guard_;
    return autocommit_ ? "; SET autocommit = 1" : "";
  }
  std::string existing_sql(const std::string& condition) const;
  std::string existing_sql_of_caller() const;
  static constexpr std::string_view claim_columns =
      "(consumer, business_key, message_id, content_hash, state, attempt_token, consumed_at, lease_expires_at)";
  std::string claim_sql(const ClaimRequest&) const;

  /// MariaDB: it precedes a statement that must not wait for a lock.
  static constexpr std::string_view no_lock_wait = "SET STATEMENT innodb_lock_wait_timeout = 0 FOR ";
  std::string opening_sql(std::string_view before_insert) const;
  static constexpr auto any_key = "consumer = ? AND business_key = ?";
  std::string any_claim_sql() const;
  std::string any_closing_sql() const;
  static std::array<std::string_view, 7> opening_values(const ClaimRequest&);
  unsigned try_claim(const ClaimRequest&);
  std::vector<Confirmation> confirmations(std::span<const ClaimToCommit>) const;
  std::string closing_statements(std::span<const ClaimToCommit>, std::span<const std::string> writes) const;
  static std::array<std::string_view, 4> closing_values(const ClaimToCommit&);
  std::string confirmation_sql(const std::string& result, const std::string& consumer, const std::string& keys,
                               const std::string& token) const;
  PreparedClosing prepared_closing(std::span<const ClaimToCommit>, std::span<const std::string> writes);
  std::string opening_all_sql(const std::string& claims) const;
  MysqlStatement* prepared_opening(std::size_t rows);
  static std::vector<MysqlRow> run_prepared_claims(MysqlStatement&, std::span<const ClaimRequest>);
  void claim_some(bool open, std::span<const ClaimRequest>, std::vector<ClaimReply>&);
  std::vector<MysqlRow> run_claims(bool open, const std::string& insert, std::span<const ClaimRequest>);
  bool runs_on_savepoint(const std::string& sql);
  std::optional<CommitStatus> commit_in_one_statement(MYSQL*, std::span<const ClaimToCommit>,
                                                      std::span<const std::string> writes);
  std::size_t remove_old(const PurgeBatch&, const std::vector<PurgeCandidate>&);
  std::size_t remove_locked(const PurgeBatch&, const std::string& table,
                            const std::vector<std::vector<std::string>>& keys);
  bool restore(MYSQL*) noexcept;
  void give_up_unread_result() noexcept;
  bool restore_rest(MYSQL*) noexcept;
  bool restore_after_compound(MYSQL*) noexcept;
  bool is_shadowed(MYSQL*) noexcept;

  MysqlSessionTracker tracker_;  ///< Only for a pool.
  const bool pooled_;
  Flavour flavour_;              ///< The capabilities of the server.
  unsigned long thread_id_ = 0;  ///< Pool: the id of the configured connection. 0: the session must not be used again.
  bool commit_sent_ = false;
  bool takes_compounds_ = false;  ///< A caller's session: compound statements and procedures work with its settings.
  bool checks_at_begin_ = false;  ///< A caller's session: the settings were not checked before the transaction.
  bool open_sent_ = false;        ///< A caller's session: a statement of ours may have begun a transaction.
  bool keeps_prepared_ = true;    ///< A caller's session: the server takes prepared statements.
  bool knows_cluster_ = false;    ///< `Flavour::cluster` was found out.
  std::string changed_settings_;  ///< A caller's session: the condition that its settings differ from the last check.
  bool reads_committed_ = false;  ///< Pool: a read sees only committed rows, as far as we know the server.
  bool shows_commits_early_ = false;  ///< The server shows commits before they are on the disk.
  bool tracks_schema_ = false;        ///< The client library knows the default database.
  std::string found_database_;        ///< The default database that `unsafe_settings` has found. Empty: none.
  bool asked_tracker_ = false;        ///< A caller's session: `tracks_schema_` was found out.
  bool found_tracker_ = false;        ///< `unsafe_settings` has found that the server reports the default database.
  std::string default_database_;      ///< A caller's session: the default database at `use_schema`.
  bool is_just_read_ = false;         ///< A caller's session: no transaction has begun since `use_schema`.
  bool autocommit_ = true;            ///< The value that the session had before, which we restore.
  std::string schema_;
  std::string table_ = "txinbox_consumed_message";
  std::string restore_ = "SET autocommit = 1";  ///< A single SET statement.
  std::string end_guard_;     ///< Pool: the end of a compound statement. It sets autocommit and compares the settings.
  std::string restore_role_;  ///< Empty if the user has no roles.
  std::string database_;      ///< Pool: the name of the session's default database.
  MysqlStatement opening_, closing_, existing_;  ///< With compound statements or procedures.
  MysqlStatement settings_;                      ///< Only for a caller's session: whether its settings have changed.
  MysqlStatement opening_without_wait_;          ///< It is prepared at its first use.
  MysqlManyKeysStatement opening_all_, closing_all_;  ///< Only for a pool, with compound statements.
  std::map<const KeptStatement*, MysqlStatement> kept_;
};

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
