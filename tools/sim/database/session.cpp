#include "sim/database/session.hpp"

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "sim/database/dialect.hpp"

namespace txinbox::sim {

using namespace backend;

namespace {

constexpr auto insert_sql =
    "INSERT OR IGNORE INTO txinbox_consumed_message (consumer, business_key, message_id, state, attempt_token, "
    "content_hash, lease_expires_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, CASE WHEN ?7 IS NOT NULL THEN sim_now(?7) END)";
constexpr auto select_sql =
    "SELECT state, attempt_token, content_hash, result, "
    "CASE WHEN lease_owner IS NOT NULL AND (lease_expires_at IS NULL OR lease_fence IS NULL) THEN 0 "
    "ELSE -sim_since(lease_expires_at) END, lease_fence, sim_since(consumed_at) "
    "FROM txinbox_consumed_message WHERE consumer = ?1 AND business_key = ?2";
constexpr auto confirm_sql =
    "UPDATE txinbox_consumed_message SET state = 'consumed', result = CASE WHEN ?5 THEN result ELSE ?4 END, "
    "lease_expires_at = NULL WHERE consumer = ?1 AND business_key = ?2 AND attempt_token = ?3";

/// It changes nothing, and commits.
constexpr auto keep_row_sql =
    "UPDATE txinbox_consumed_message SET state = state WHERE consumer = ?1 AND business_key = ?2 AND state = "
    "'consumed'";

Value text(std::string_view value) { return {.type = Value::Type::text, .bytes = std::string(value)}; }
Value text_or_null(std::string_view value) { return value.empty() ? Value() : text(value); }
Value blob(std::string_view value) { return {.type = Value::Type::blob, .bytes = std::string(value)}; }
Value blob_or_null(std::string_view value) { return value.empty() ? Value() : blob(value); }

std::optional<std::string> as_text(const Value& value) {
  switch (value.type) {
    case Value::Type::null:
      return std::nullopt;
    case Value::Type::integer:
      return std::to_string(value.integer);
    case Value::Type::real:
      return fmt::format("{}", value.real);
    default:
      return value.bytes;
  }
}

class SimSession final : public Session {
 public:
  SimSession(const Personality& personality, ConnectionPtr connection)
      : Session(personality.refuses_commit_of_handler ? InitialState::consumed : InitialState::torn, connection),
        personality_(personality),
        server_(session_of(*connection)) {}

  void configure(const PoolOptions&) override {}
  void remember_settings() override {}
  void use_schema(const std::string&) override { dialect_ = make_sim_dialect(personality_); }
  std::vector<Problem> unsafe_settings() override { return {}; }
  bool reset() noexcept override {
    if (server_.is_lost()) return false;
    try {
      server_.is_in_handler = false;
      server_.call([&] { server_.roll_back(); }, ServerSession::Request::rollback);
      return true;
    } catch (const DatabaseError&) {
      return false;
    }
  }
  bool intact() noexcept override { return !server_.is_lost(); }
  bool in_transaction() override { return server_.has_transaction(); }

  void begin() override {
    server_.call([&] { open(); });
  }
  ClaimReply claim(const ClaimRequest& row) override {
    ClaimReply reply{};
    server_.call([&] { reply = insert(row); });
    return reply;
  }
  bool guard_likely_intact() noexcept override { return !server_.is_lost() && server_.is_usable(); }

  bool confirm(std::span<const ClaimToCommit> claims) override {
    bool all = true;
    server_.call([&] { all = confirm_now(claims); });
    return all;
  }

  CommitStatus commit(std::span<const ClaimToCommit> claims, std::span<const std::string> writes) override {
    auto status = CommitStatus::not_ours;
    server_.call(
        [&] {
          if (!server_.release_savepoint(guard_) || !confirm_now(claims)) return;
          for (const std::string& sql : writes) run_now(sql);
          if (!server_.has_transaction()) return;  // the server has ended the session while a statement waited
          server_.transaction()->is_guarded = false;
          server_.is_in_handler = false;
          server_.commit();
          status = CommitStatus::committed;
        },
        ServerSession::Request::commit);
    return status;
  }

  bool may_have_committed() const noexcept override { return server_.may_have_committed; }
  bool refused_commit() const noexcept override { return server_.has_refused_commit; }
  bool may_have_foreign_commit() const noexcept override { return server_.foreign_commits > 0; }
  std::optional<std::string> code_of_handler_error() noexcept override { return std::nullopt; }

  RollbackStatus roll_back() noexcept override {
    bool is_ours = false;
    try {
      server_.call(
          [&] {
            is_ours = server_.has_transaction() && server_.roll_back_to_savepoint(guard_);
            server_.is_in_handler = false;
            server_.roll_back();
          },
          ServerSession::Request::rollback);
    } catch (const DatabaseError&) {
      return RollbackStatus::failed;
    }
    return is_ours ? RollbackStatus::ours : RollbackStatus::not_ours;
  }

  bool verify_guard() override {
    bool is_there = false;
    server_.call([&] {
      is_there = server_.release_savepoint(guard_);
      if (is_there) server_.set_savepoint(guard_);
    });
    return is_there;
  }

  void savepoint() override {
    server_.call([&] { server_.set_savepoint(step_); });
  }
  bool release_savepoint(const ClaimToCommit* claim) override {
    bool released = false;
    server_.call([&] { released = server_.release_savepoint(step_) && (claim == nullptr || confirm_now({claim, 1})); });
    return released;
  }
  bool rollback_to_savepoint() noexcept override {
    bool is_there = false;
    try {
      server_.call([&] { is_there = server_.roll_back_to_savepoint(step_) && server_.release_savepoint(step_); },
                   ServerSession::Request::rollback);
    } catch (const DatabaseError&) {
      return false;
    }
    return is_there;
  }

  bool shows_commits_early() const noexcept override { return personality_.shows_commits_early; }
  bool wait_until_durable(std::string_view consumer, std::string_view business_key) override {
    std::size_t found = 0;
    server_.call(
        [&] {
          found = server_.run(keep_row_sql, {text(consumer), text(business_key)});
        },
        ServerSession::Request::commit);
    return found == 1;
  }

  std::size_t execute(const std::string& sql) override {
    std::size_t changed = 0;
    server_.call([&] { changed = run_now(sql); });
    return changed;
  }
  bool try_run_kept(const KeptStatement& statement, std::span<const Parameter> values) override {
    server_.call([&] { (void)run_now(statement.sql(dialect()), values_of(values)); });
    return true;
  }
  std::size_t change(const std::string& sql) override {
    std::size_t changed = 0;
    server_.call([&] { changed = run_now(sql); }, ServerSession::Request::commit);
    return changed;
  }
  Changed change_kept(const KeptStatement& statement, std::span<const Parameter> values) override {
    Changed changed{};
    server_.call(
        [&] {
          changed.rows = run_now(statement.sql(dialect()), values_of(values));
          if (changed.rows == 1) changed.number = server_.marked();
        },
        ServerSession::Request::commit);
    return changed;
  }
  std::vector<Row> read(const std::string& sql, std::size_t /*columns*/) override {
    std::vector<Values> rows;
    server_.call([&] { (void)server_.run(sql, {}, &rows); });
    return as_rows(rows);
  }
  std::vector<Row> read_kept(const KeptStatement& statement, std::span<const Parameter> values,
                             std::size_t /*columns*/) override {
    std::vector<Values> rows;
    server_.call([&] { (void)server_.run(statement.sql(dialect()), values_of(values), &rows); });
    return as_rows(rows);
  }
  PurgeReply purge_some(const PurgeBatch&) override { throw std::logic_error("the simulator does not purge yet"); }

 private:
  std::optional<ClaimedRow> find_committed(const ClaimRequest& row) override {
    std::optional<ClaimedRow> found;
    server_.call([&] { found = find(row); });
    return found;
  }

  ClaimReply open_and_claim(const ClaimRequest& row) override {
    ClaimReply reply{};
    server_.call([&] {
      open();
      reply = insert(row);
    });
    return reply;
  }

  static Value integer(std::int64_t value) { return {.type = Value::Type::integer, .integer = value}; }

  static Values values_of(std::span<const Parameter> parameters) {
    Values values;
    for (const Parameter& each : parameters) {
      const bool is_null = each.value.data() == nullptr;
      const bool is_blob = each.type == ParameterType::bytes || each.type == ParameterType::token;
      values.push_back(is_null                               ? Value()
                       : is_blob                             ? blob(each.value)
                       : each.type == ParameterType::integer ? integer(std::stoll(std::string(each.value)))
                                                             : text(each.value));
    }
    return values;
  }

  std::size_t run_now(const std::string& sql, const Values& values = {}) {
    return server_.run(resolve_conflict_mark(sql), values);
  }

  void open() {
    server_.foreign_commits = 0;
    server_.has_refused_commit = false;
    server_.begin();
    server_.is_in_handler = true;
    server_.transaction()->is_guarded = true;
    server_.set_savepoint(guard_);
  }

  ClaimReply insert(const ClaimRequest& row) {
    const Value lease = has_lease(row) ? integer(undecided_time.count()) : Value();
    const std::size_t changed = server_.run(
        insert_sql, {text(row.consumer), text(row.business_key), text_or_null(row.message_id),
                     text(to_string(initial_state_)), blob(row.token->bytes()), blob_or_null(row.content_hash), lease});
    if (changed == 1) return {ClaimStatus::inserted};
    auto existing = find(row);
    if (!existing) return {ClaimStatus::vanished};
    return {ClaimStatus::exists, std::move(*existing)};
  }

  std::optional<ClaimedRow> find(const ClaimRequest& row) {
    std::vector<Values> rows;
    (void)server_.run(select_sql, {text(row.consumer), text(row.business_key)}, &rows);
    if (rows.empty()) return std::nullopt;
    const Values& found = rows.front();
    ClaimedRow existing;
    existing.set_state(found[0].bytes);
    existing.token = found[1].bytes;
    existing.content_hash = found[2].bytes;
    if (!found[3].is_null()) existing.result = found[3].bytes;
    if (!found[4].is_null()) existing.lease_remaining = std::chrono::milliseconds(found[4].integer);
    existing.lease_fence = found[5].integer;
    existing.age = std::chrono::milliseconds(found[6].integer);
    return existing;
  }

  bool confirm_now(std::span<const ClaimToCommit> claims) {
    for (const ClaimToCommit& claim : claims) {
      const Value result = claim.result ? blob(*claim.result) : Value();
      const Value keeps_result{.type = Value::Type::integer, .integer = claim.confirmed ? 1 : 0};
      if (server_.run(confirm_sql, {text(claim.consumer), text(claim.business_key), blob(claim.token->bytes()), result,
                                    keeps_result}) != 1) {
        return false;
      }
    }
    return true;
  }

  const Personality& personality_;
  ServerSession& server_;
};

}  // namespace

ServerSession& session_of(const NativeConnection& connection) {
  return dynamic_cast<const SimConnection&>(connection).session();
}

std::unique_ptr<Session> make_sim_session(const Personality& personality, ConnectionPtr connection) {
  return std::make_unique<SimSession>(personality, std::move(connection));
}

std::vector<Row> as_rows(const std::vector<Values>& values) {
  std::vector<Row> rows;
  for (const Values& each : values) {
    Row& row = rows.emplace_back();
    for (const Value& value : each) row.push_back(as_text(value));
  }
  return rows;
}

}  // namespace txinbox::sim
