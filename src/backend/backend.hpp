#pragma once

// The one seam where databases differ. A new database is a `Database` with its `Session` and its
// `Catalog`, and one line in registry.cpp.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <txinbox/error.hpp>
#include <txinbox/inspect.hpp>
#include <txinbox/pool.hpp>
#include <txinbox/schema.hpp>

#include "backend/dialect.hpp"
#include "backend/purge.hpp"
#include "backend/query.hpp"
#include "base/token.hpp"
#include "base/url.hpp"

namespace soci {
class session;
class soci_error;
class backend_factory;
}  // namespace soci

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

using detail::Token;

/// What an error of the database means to us; told by its code.
enum class ErrorClass {
  duplicate_key,
  deadlock,
  lock_timeout,
  serialization_failure,
  statement_timeout,
  connection_lost,  ///< The session is of no more use.
  read_only,        ///< The server became a replica: the session is of no more use, another may be.
  commit_refused,   ///< The guard has refused a handler's own commit.
  environment,      ///< A full disk, no memory, an I/O error, a limit, a table that is gone: no message's fault.
  other,
};

/// Whether the same run can soon succeed without anybody's help.
constexpr bool is_transient(ErrorClass c) noexcept {
  return c != ErrorClass::duplicate_key && c != ErrorClass::commit_refused && c != ErrorClass::environment &&
         c != ErrorClass::other;
}

/// Whether a session that saw this error must be closed.
constexpr bool is_fatal_to_session(ErrorClass c) noexcept {
  return c == ErrorClass::connection_lost || c == ErrorClass::read_only;
}

/// The row that a claim inserts. The strings must outlive it.
struct ClaimRow {
  std::string_view consumer;
  std::string_view business_key;
  std::string_view message_id;
  std::string_view content_hash;  ///< 32 bytes; empty when the message has no content.
  const Token* token;
};

/// What a claim met instead, when the key was there.
struct ExistingRow {
  std::string state;
  std::string token;         ///< 16 bytes.
  std::string content_hash;  ///< 32 bytes, or empty.
  std::optional<std::string> result;
  std::optional<std::chrono::milliseconds> lease_remaining = {};  ///< Not above 0 when it has run out.
  std::int64_t lease_fence = 0;
  std::chrono::milliseconds age{0};  ///< Since it came into this state.
};

enum class ClaimStatus {
  inserted,
  exists,    ///< `ClaimReply::row` is set.
  vanished,  ///< There was a duplicate, and then no row: somebody removed it. Claim again.
};

struct ClaimReply {
  ClaimStatus status;
  ExistingRow row = {};
  bool ended = false;  ///< Of `begin_and_claim`: no transaction is open any more.
};

/// A claim of the open transaction, as the end of the transaction needs it. What it points to must outlive it.
struct ClosingClaim {
  std::string_view consumer;
  std::string_view business_key;
  const Token* token;
  bool confirmed = false;                       ///< By the end of its step, without a result.
  std::optional<std::string_view> result = {};  ///< What the handler stored.
};

enum class CommitStatus {
  committed,
  not_ours,  ///< The guard is gone: nothing was committed by us. Roll back.
};

enum class RollbackStatus {
  ours,      ///< The guard was still there: nothing of the transaction is left.
  not_ours,  ///< The guard was gone: a claim may have been committed.
  failed,    ///< The connection is of no more use, so nothing is known.
};

/// Something that `verify` refuses or `doctor` reports.
struct Problem {
  ErrorCode code;  ///< For `verify`; unused where the severity is below error.
  Finding finding;
};

/// Who owns the session: it decides what may be left changed, and what may be relied on.
enum class Ownership { pool, caller };

/// How a claim is kept from counting as consumed when the handler commits the transaction itself.
///
/// - The database refuses that commit: SQLite in a pool by its hook, PostgreSQL by a deferred constraint trigger.
///   The claim is inserted as `consumed`.
/// - It cannot be refused: the claim is inserted as `torn`, and becomes `consumed` just before our own COMMIT.
enum class Birth { consumed, torn };

std::string_view to_string(Birth) noexcept;

/// One connection, as the inbox uses it. Every call may throw the `soci::soci_error` kind of its
/// database unless it says otherwise; own texts hold no bound values.
class Session {
 public:
  virtual ~Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // --- A session's life

  /// Makes the settings of a pool's session. Pool only, once per connection.
  virtual void configure(const PoolOptions&) = 0;

  /// Notes the settings that `clean` comes back to. Pool only, after `on_connect`.
  virtual void remember_settings() = 0;

  /// Where the tables are, as found by the catalog at verification; all statements name it.
  virtual void use_schema(const std::string& schema) = 0;

  /// The session's settings that could lose or merge messages, all of severity error. Cheap: on a
  /// caller's session it runs before each transaction.
  virtual std::vector<Problem> unsafe_settings() = 0;

  /// Makes it fit for statements of the user's outside a guarded transaction. Pool only; `clean` undoes it.
  virtual void lend() {}

  /// Rolls back and restores the remembered settings. False: close the connection.
  virtual bool clean() noexcept = 0;

  /// Whether this is still the connection that was configured, and alive as far as is known. No I/O.
  virtual bool intact() noexcept = 0;

  // --- A guarded transaction

  virtual bool in_transaction() = 0;

  /// Opens the transaction and sets the guard.
  virtual void begin() = 0;

  /// Inserts a claim into the open transaction.
  virtual ClaimReply claim(const ClaimRow&) = 0;

  /// Makes a claim, in the open transaction, of a row whose lease has run out. False: it is not, or no more,
  /// such a row.
  virtual bool take_over(const ClaimRow& row) { return execute(take_over_sql(row)) == 1; }

  /// Both, in one round trip where the protocol allows. When the row exists the transaction may have
  /// ended: there is nothing in it.
  ///
  /// Redeliveries come in rows. After some duplicates the next key is looked for first, which is cheaper
  /// and waits for nobody; of a key that is not seen there, the insert alone decides, as ever.
  ClaimReply begin_and_claim(const ClaimRow& row) {
    if (expects_duplicate()) {
      if (auto existing = look_for(row)) return {ClaimStatus::exists, std::move(*existing), true};
    }
    ClaimReply reply = open_and_claim(row);
    note_claim(reply.status == ClaimStatus::exists);
    return reply;
  }

  /// Whether to look for the next key before it is inserted: the last ones were all there, or a look costs no
  /// round trip.
  virtual bool looks_first() const noexcept { return expects_duplicate(); }
  void note_claim(bool is_duplicate) noexcept { duplicates_in_a_row_ = is_duplicate ? duplicates_in_a_row_ + 1 : 0; }

  /// Both, for several rows, sorted by key, each key once. The transaction stays open.
  virtual std::vector<ClaimReply> begin_and_claim_all(std::span<const ClaimRow> rows) {
    begin();
    std::vector<ClaimReply> replies;
    replies.reserve(rows.size());
    for (const ClaimRow& row : rows) replies.push_back(claim(row));
    return replies;
  }

  /// What is known without a round trip: false when the transaction is not ours any more, or aborted.
  virtual bool seems_intact() noexcept = 0;

  /// Writes into claimed rows that their work is complete, with its results. The guard must have been proven
  /// after the last statement of a handler. False: a row has vanished.
  virtual bool confirm(std::span<const ClosingClaim>) = 0;

  /// Proves the guard, confirms these claims, commits. The transaction's other claims have been confirmed.
  /// Leaves a pool's session clean when it succeeds. When it throws, `may_have_committed` says what is known.
  virtual CommitStatus commit(std::span<const ClosingClaim> claims) = 0;

  /// After `commit` threw: whether COMMIT was sent, so that it may have taken effect.
  virtual bool may_have_committed() const noexcept { return true; }

  /// Whether the guard has refused a commit of the handler's in the transaction that is open or was ended last, with
  /// an error that its code does not tell.
  virtual bool refused_commit() const noexcept { return false; }

  /// Whether a run can have failed for what an earlier handler left on the connection, and `roll_back` does not
  /// see: let `clean` look.
  virtual bool may_be_reason() const noexcept { return false; }

  /// Ends whatever transaction is open, and says whether it was still ours.
  virtual RollbackStatus roll_back() noexcept = 0;

  /// Proves the guard, and keeps it.
  virtual bool prove() = 0;

  // --- A step of it: one message of a batch, which can be undone alone

  virtual void begin_step() = 0;

  /// Proves that the step is still there, keeps what it did, and confirms its claim; null where it has none.
  /// False: the step is gone or aborted, or the claim has vanished.
  virtual bool end_step(const ClosingClaim* claim) = 0;

  /// Undoes the step. False: the transaction is not ours any more.
  virtual bool undo_step() noexcept = 0;

  // --- Afterwards, each in a transaction of its own

  /// Returns when no crash can take away any more what others committed and this session has read: some
  /// servers show a commit before it is on the disk. It needs a consumed row; false when that is gone. A
  /// commit of one's own after the read does it as well.
  virtual bool make_durable(std::string_view /*consumer*/, std::string_view /*business_key*/) { return true; }

  /// Waits until what the other nodes of a cluster have committed is seen on this one.
  virtual void catch_up() {}

  // --- Statements that are the same for every database, spelled by its dialect

  /// Valid after `use_schema`.
  const Dialect& dialect() const noexcept { return *dialect_; }

  /// Runs one INSERT, UPDATE or DELETE in the open transaction. Returns how many rows it found to change.
  virtual std::size_t execute(const std::string& sql) = 0;

  /// Runs one INSERT, UPDATE or DELETE in a transaction of its own; none may be open. Returns how many rows
  /// it found to change.
  virtual std::size_t change(const std::string& sql) = 0;

  /// The same for a statement that finds one row at most and ends with `Dialect::returning`: the number that it
  /// returns. None: it found no row to change, or the number is NULL.
  virtual std::optional<std::int64_t> change_returning(const std::string& sql) = 0;

  /// Runs one SELECT and leaves no transaction open.
  virtual std::vector<Row> read(const std::string& sql, std::size_t columns) = 0;

  /// Removes some old rows and commits. It waits for no row that another holds: that one is left.
  virtual PurgeReply purge_some(const PurgeBatch&) = 0;

 protected:
  explicit Session(Birth birth) : birth_(birth) {}

  /// The committed row of this key, read outside any transaction. None, too, where such a read would
  /// not be free of consequences.
  virtual std::optional<ExistingRow> look_for(const ClaimRow&) = 0;

  /// The fence grows, so that whoever held the lease can neither complete nor extend it.
  std::string take_over_sql(const ClaimRow&) const;

  /// `begin` and `claim`.
  virtual ClaimReply open_and_claim(const ClaimRow& row) {
    begin();
    return claim(row);
  }

  /// The guard: a savepoint of a name that no handler can set by accident. One name a session will do:
  /// the savepoint itself ends with its transaction.
  const std::string guard_ = "txinbox_" + Token::random().hex();
  const std::string step_ = guard_ + "_step";

  const Birth birth_;

  std::unique_ptr<Dialect> dialect_;

 private:
  bool expects_duplicate() const noexcept {
    constexpr int enough_in_a_row = 3;
    return duplicates_in_a_row_ >= enough_in_a_row;
  }

  int duplicates_in_a_row_ = 0;
};

/// How a connection reaches its server.
struct Transport {
  bool leaves_host = false;  ///< Over TCP, to an address that is not the loopback's.
  std::string encryption;    ///< "TLSv1.3, TLS_AES_256_GCM_SHA384"; empty without encryption.
};

/// What the schema, the server and the tables look like on one connection: for migrate, verify,
/// doctor, status, show and forget. Not on the path of a message.
class Catalog {
 public:
  virtual ~Catalog() = default;
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;

  /// The schema (MySQL: database) in which `table` is found, empty when it is not.
  virtual std::string find_schema(std::string_view table) = 0;

  /// Differences between the tables in `schema` and the migrations: all of severity error, except
  /// for a missing retention index, which is a warning.
  virtual std::vector<Problem> check_tables(const std::string& schema) = 0;

  /// What is not durable or can hold keys for long: notes and warnings.
  virtual std::vector<Finding> check_server() = 0;

  virtual std::string server_version() = 0;

  /// Runs one SELECT.
  virtual std::vector<Row> read(const std::string& sql, std::size_t columns) = 0;

  /// How the connection reaches its server.
  virtual Transport transport() { return {}; }

  /// The size of the consumed-message table with its indexes, 0 where it cannot be told.
  virtual std::int64_t table_bytes(const std::string& schema) = 0;

  /// Keeps other `migrate` calls out, and opens a transaction where DDL has one.
  virtual void begin_migrations() = 0;

  /// Runs one migration.
  virtual void apply(const Migration&) = 0;

  /// Commits what was applied and lets others in.
  virtual void end_migrations() = 0;

  /// Undoes what was applied, where DDL has a transaction, and lets others in.
  virtual void abandon_migrations() noexcept = 0;

 protected:
  Catalog() = default;
};

/// A kind of database.
class Database {
 public:
  virtual ~Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// As SOCI calls it, and as the folder of its migrations is called.
  virtual std::string_view name() const noexcept = 0;

  /// The connection string for SOCI, with the options' time-outs in it. May ask the client library
  /// for a password that its own files hold.
  virtual std::string connection_string(const detail::Url&, const PoolOptions&) const = 0;

  /// SOCI's own, which opens this database's connections.
  virtual const soci::backend_factory& factory() const noexcept = 0;

  /// Opens a session by `factory`, which must outlive it; the string is SOCI's, as above or as the user gave it behind
  /// `soci:`. No error repeats a value of `parameters`, which are those of the URL: a password can stand in the wrong
  /// one.
  virtual std::unique_ptr<soci::session> open(const soci::backend_factory& factory,
                                              const std::string& connection_string,
                                              const detail::UrlParameters& parameters) const;

  /// Says in words why a session cannot be opened, and what to mend, if the server refuses this user, password or
  /// database, or the file cannot be used: an error that waiting does not mend. None for any other error.
  virtual std::optional<std::string> refusal(const soci::soci_error&, const std::string& connection_string) const = 0;

  /// None for an error of another database.
  virtual std::optional<ErrorClass> classify(const soci::soci_error&) const noexcept = 0;

  /// The code of an error of this database, as text.
  virtual std::string code_of(const soci::soci_error&) const = 0;

  /// Throws what SOCI kept to itself when it ran the last statement.
  virtual void check_last_statement(soci::session&) const {}

  virtual std::unique_ptr<Session> attach(soci::session&, Ownership) const = 0;
  virtual std::unique_ptr<Catalog> catalog(soci::session&) const = 0;

  /// How it spells statements about the tables in `schema`.
  virtual std::unique_ptr<Dialect> dialect(const std::string& schema) const = 0;

 protected:
  Database() = default;
};

/// How long the client waits for an answer before it takes the connection for dead: a little longer
/// than the server may work on one statement, so that the server's own time-outs come first.
inline std::chrono::milliseconds longest_statement(const PoolOptions& options) {
  return std::max(options.statement_timeout, options.lock_timeout) + std::chrono::seconds(5);
}

// --- registry.cpp: the databases that this build knows.

/// Errors: `Error` unsupported_database.
const Database& database_named(std::string_view name);
const Database& database_of(soci::session&);

/// `other` for what no database knows. SOCI's own errors carry no code; a connection that could not
/// be opened is told by `Database::open`, which throws the database's kind.
ErrorClass classify(const soci::soci_error&) noexcept;

/// "mysql 1146"; "database" for an error without a code.
std::string code_of(const soci::soci_error&);

/// "deadlock" and so on; empty for `other` and `environment`, of which the code says more.
std::string_view to_string(ErrorClass) noexcept;

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
