#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/session.hpp"
#include "backend/sqlite3/open_file.hpp"
#include "backend/sqlite3/parts.hpp"
#include "backend/sqlite3/statement.hpp"
#include "backend/sqlite3/writer_queue.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// The inbox on one SQLite connection.
///
/// On a pool's connection the guard is two hooks: a commit hook refuses every commit except ours, and a rollback hook
/// records every rollback. A connection has only one hook of each kind. So a caller's connection keeps its own hooks,
/// and the guard is a savepoint. On such a connection, a handler's own COMMIT cannot be refused, and a crash may follow
/// it. So the claims are inserted as torn, and are confirmed just before our COMMIT.
///
/// An authorizer notices when a handler prepares a statement that can delete a claim.
///
/// session.cpp handles the settings. transaction.cpp handles the guarded transaction. single_statements.cpp runs other
/// statements. purge.cpp removes old rows.
class Sqlite3Session final : public Session {
 public:
  Sqlite3Session(ConnectionPtr, Ownership);
  ~Sqlite3Session() override;

  void configure(const PoolOptions&) override;
  void remember_settings() override;
  void use_schema(const std::string&) override;
  std::vector<Problem> unsafe_settings() override;
  bool will_check_settings() noexcept override { return !pooled_ && native() != nullptr; }
  bool reset() noexcept override;
  bool intact() noexcept override;

  bool in_transaction() override;
  void begin() override;
  ClaimReply claim(const ClaimRequest&) override;
  bool guard_likely_intact() noexcept override;
  bool confirm(std::span<const ClaimToCommit>) override;
  CommitStatus commit(std::span<const ClaimToCommit>, std::span<const std::string> writes) override;
  bool may_be_broken() const noexcept override { return true; }
  std::optional<std::string> code_of_handler_error() noexcept override;
  RollbackStatus roll_back() noexcept override;
  bool refused_commit() const noexcept override { return hooks_->refused || refused_commit_; }

  bool verify_guard() override;
  void savepoint() override;
  bool release_savepoint(const ClaimToCommit*) override;
  bool rollback_to_savepoint() noexcept override;

  std::size_t execute(const std::string& sql) override;
  bool try_run_kept(const KeptStatement&, std::span<const Parameter>) override;
  std::size_t change(const std::string& sql) override;
  Changed change_kept(const KeptStatement&, std::span<const Parameter>) override;
  bool reads_before_insert() const noexcept override { return true; }
  std::vector<Row> read(const std::string& sql, std::size_t columns) override;
  std::vector<Row> read_kept(const KeptStatement&, std::span<const Parameter>, std::size_t columns) override;
  PurgeReply purge_some(const PurgeBatch&) override;

 protected:
  std::optional<ClaimedRow> find_committed(const ClaimRequest&) override;

 private:
  template <class Run>
  auto in_turn(const Run& run);
  template <class Run>
  auto with_kept(const KeptStatement&, std::span<const Parameter>, const Run& run);

  /// The data of the hooks. Its address distinguishes our hooks from others.
  struct Hooks {
    bool guarding = false;    ///< Our transaction is open.
    bool committing = false;  ///< Our own COMMIT is running.
    bool lost = false;        ///< Somebody else has ended the transaction.
    bool refused = false;     ///< The commit hook has refused a COMMIT.
  };

  /// Leaves the queue of writers when a turn ends.
  struct EndTurn {
    std::optional<WriterTurn>& turn;
    ~EndTurn() {
      if (turn) turn->end();
    }
  };
  static int on_commit(void*);
  static void on_rollback(void*);
  static int on_prepare(void*, int action, const char*, const char*, const char*, const char*);

  /// While it exists, `on_prepare` ignores the statements: they are ours.
  struct OwnSql {
    explicit OwnSql(bool& is_own) noexcept : is_own_(is_own) { is_own_ = true; }
    ~OwnSql() { is_own_ = false; }
    OwnSql(const OwnSql&) = delete;
    OwnSql& operator=(const OwnSql&) = delete;

   private:
    bool& is_own_;
  };

  ::sqlite3* native() const noexcept { return native_handle<::sqlite3>(); }
  ::sqlite3* connection();
  Sqlite3Statement& statement(Sqlite3Statement& slot, const std::string& sql);
  bool try_run(Sqlite3Statement& slot, const std::string& sql) noexcept;
  void release_statements() noexcept;
  void abandon_connection() noexcept;
  bool hooks_in_place(::sqlite3*) noexcept;
  void remove_hooks() noexcept;
  void enter_queue(::sqlite3*, std::chrono::milliseconds timeout);
  void begin_immediate(::sqlite3*, std::chrono::milliseconds timeout);
  void open_guarded(::sqlite3*, std::chrono::milliseconds timeout);
  void restore() noexcept;
  void note_broken(int result) noexcept;
  ClaimReply insert_claim(const ClaimRequest&);
  bool guard_is_there(::sqlite3*) noexcept;
  bool is_there(const ClaimToCommit&);
  std::optional<ClaimedRow> read_existing(const ClaimRequest&);
  bool try_roll_back() noexcept;
  std::vector<PurgeCandidate> find_old(const PurgeBatch&);
  std::size_t remove_old(const PurgeBatch&, const std::vector<PurgeCandidate>&, std::chrono::nanoseconds& waited);
  std::chrono::milliseconds busy_timeout(::sqlite3*);

  const bool pooled_;
  ::sqlite3* configured_ = nullptr;        ///< The connection with our statements; a pool's also has our hooks.
  std::shared_ptr<Sqlite3OpenFile> file_;  ///< Pool: the file that `configure` has found; null in memory.
  std::chrono::milliseconds lock_timeout_{0};
  bool foreign_keys_ = true;
  bool reads_committed_ = false;                         ///< False only with a shared cache and read_uncommitted.
  std::vector<std::pair<std::string, int>> remembered_;  ///< The pragmas that `reset` restores.
  bool refused_commit_ = false;                          ///< Whether a commit was refused in the last transaction.
  std::unique_ptr<Hooks> hooks_ = std::make_unique<Hooks>();
  /// A handler has prepared a statement that deletes or changes claims on this connection. It may still have it.
  bool may_delete_claims_ = false;
  bool is_own_sql_ = false;  ///< See `OwnSql`.
  std::optional<WriterTurn> turn_;
  bool broken_ = false;      ///< The connection may have caused an error: `reset` refuses it.
  bool left_open_ = false;   ///< A rollback failed, so our transaction is still open.
  bool has_leases_ = false;  ///< The open transaction has claims with a lease.
  Sqlite3Statement begin_, insert_, insert_with_lease_, select_, is_there_, confirm_, confirm_with_lease_, commit_,
      roll_back_;
  /// Only for a caller's session.
  Sqlite3Statement set_guard_, release_guard_, return_to_guard_;
  std::map<const KeptStatement*, Sqlite3Statement> kept_;
};

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
