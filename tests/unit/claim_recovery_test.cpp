// A claim that turns up only after it was searched for, and an error between two claims of one run. No server does this
// on demand, so the session answers as the test wants.

#include "transaction/claim_recovery.hpp"

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "backend/database.hpp"
#include "backend/registry.hpp"
#include "transaction/guarded_transaction.hpp"

namespace txinbox::detail {
namespace {

struct LostConnection final : std::runtime_error, DatabaseError {
  LostConnection() : runtime_error("the test loses the connection"), DatabaseError("sqlite3", "10") {}
  const char* what() const noexcept override { return runtime_error::what(); }
};

/// Inserts each claim. Its connection is broken when the transaction is rolled back.
class BrokenSession : public backend::Session {
 public:
  BrokenSession() : Session(backend::InitialState::torn, nullptr) {}

  void begin() override {}
  backend::ClaimReply claim(const backend::ClaimRequest&) override { return {backend::ClaimStatus::inserted}; }
  backend::RollbackStatus roll_back() noexcept override { return backend::RollbackStatus::failed; }

  void configure(const PoolOptions&) override { unexpected(); }
  void remember_settings() override { unexpected(); }
  void use_schema(const std::string&) override { unexpected(); }
  std::vector<backend::Problem> unsafe_settings() override { unexpected(); }
  bool reset() noexcept override { return false; }
  bool intact() noexcept override { return false; }
  bool in_transaction() override { unexpected(); }
  bool guard_likely_intact() noexcept override { return false; }
  bool confirm(std::span<const backend::ClaimToCommit>) override { unexpected(); }
  backend::CommitStatus commit(std::span<const backend::ClaimToCommit>, std::span<const std::string>) override {
    unexpected();
  }
  std::optional<std::string> code_of_handler_error() noexcept override { return std::nullopt; }
  bool verify_guard() override { unexpected(); }
  void savepoint() override { unexpected(); }
  bool release_savepoint(const backend::ClaimToCommit*) override { unexpected(); }
  bool rollback_to_savepoint() noexcept override { return false; }
  std::size_t execute(const std::string&) override { unexpected(); }
  bool try_run_kept(const backend::KeptStatement&, std::span<const backend::Parameter>) override { unexpected(); }
  std::size_t change(const std::string&) override { unexpected(); }
  backend::Changed change_kept(const backend::KeptStatement&, std::span<const backend::Parameter>) override {
    unexpected();
  }
  std::vector<backend::Row> read_kept(const backend::KeptStatement&, std::span<const backend::Parameter>,
                                      std::size_t) override {
    unexpected();
  }
  std::vector<backend::Row> read(const std::string&, std::size_t) override { unexpected(); }
  backend::PurgeReply purge_some(const backend::PurgeBatch&) override { unexpected(); }

 private:
  std::optional<backend::ClaimedRow> find_committed(const backend::ClaimRequest&) override { unexpected(); }

  [[noreturn]] static void unexpected() { throw std::logic_error("the test does not expect this call"); }
};

/// A handler has committed the claims, so each of them is in the table. Loses the connection at one key.
class SessionOfTornClaims final : public BrokenSession {
 public:
  explicit SessionOfTornClaims(std::string lost_at) : lost_at_(std::move(lost_at)) {
    dialect_ = backend::database_named("sqlite3").dialect("");
  }

  std::vector<backend::Row> read(const std::string&, std::size_t) override { return {{"1"}}; }
  std::size_t change(const std::string& sql) override {
    if (!lost_at_.empty() && sql.find(lost_at_) != std::string::npos) throw LostConnection();
    return 1;
  }

 private:
  std::string lost_at_;
};

TEST_CASE("an error between two claims of a run leaves none of them behind") {
  BrokenSession session;
  GuardedTransaction transaction(session);
  for (const char* key : {"first", "second", "third"}) {
    REQUIRE_FALSE(transaction.claim("svc", {.business_key = key}, "").has_value());
  }
  transaction.roll_back();
  ClaimRecovery recovery;
  recovery.collect(transaction);

  SessionOfTornClaims loses("second");
  recovery.resolve_visible(loses);
  CHECK(recovery.take_torn() == std::vector<std::string>{"first"});
  SessionOfTornClaims works("");
  recovery.resolve_visible(works);
  CHECK(recovery.take_torn() == std::vector<std::string>{"second", "third"});
}

TEST_CASE("a claim of a run whose connection broke is known as unconfirmed when it turns up") {
  BrokenSession session;
  GuardedTransaction transaction(session);
  REQUIRE_FALSE(transaction.claim("svc", {.business_key = "key"}, "").has_value());
  transaction.roll_back();
  ClaimRecovery recovery;
  recovery.collect(transaction);

  const auto row = [](RowState state, const Token& token) {
    return backend::ClaimedRow{
        .state = state, .unknown_state = {}, .token = std::string(token.bytes()), .content_hash = {}, .result = {}};
  };
  const Token& own = transaction.token();
  CHECK(recovery.is_unconfirmed("key", row(RowState::torn, own)));
  CHECK(recovery.is_unconfirmed("key", row(RowState::consumed, own)));
  CHECK_FALSE(recovery.is_unconfirmed("key", row(RowState::parked, own)));
  CHECK_FALSE(recovery.is_unconfirmed("key", row(RowState::discarded, own)));
  CHECK_FALSE(recovery.is_unconfirmed("another key", row(RowState::torn, own)));
  CHECK_FALSE(recovery.is_unconfirmed("key", row(RowState::torn, Token::random())));
  CHECK_FALSE(recovery.is_ours(row(RowState::torn, own)));  // no commit was sent
}

}  // namespace
}  // namespace txinbox::detail
