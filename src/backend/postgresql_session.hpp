#pragma once

#include <string>

#include "backend/backend.hpp"
#include "backend/postgresql_native.hpp"

namespace txinbox::inline TXINBOX_ABI::backend {

/// The inbox on one PostgreSQL connection. The guard is a savepoint; what one round trip can carry is
/// sent as one string, quoted by libpq.
class PostgresqlSession final : public Session {
 public:
  PostgresqlSession(soci::session&, Ownership);

  void configure(const PoolOptions&) override;
  void remember_settings() override;
  void use_schema(const std::string&) override;
  std::vector<Problem> unsafe_settings() override;
  bool clean() noexcept override;
  bool intact() noexcept override;

  bool in_transaction() override;
  void begin(const Token& guard) override;
  ClaimReply claim(const ClaimRow&) override;
  ClaimReply begin_and_claim(const Token& guard, const ClaimRow&) override;
  CommitStatus commit(const Token& guard, const std::vector<StoredResult>&) override;
  RollbackStatus roll_back(const Token& guard) noexcept override;
  bool mark_torn(const ClaimRow&) override;

 private:
  PGconn* connection();
  std::string begin_sql(const Token& guard) const;
  std::string insert_sql(const ClaimRow&);
  std::string key_condition(std::string_view consumer, std::string_view business_key);
  ClaimReply claim_with(const std::string& before, const ClaimRow&);

  soci::session& sql_;
  const bool pooled_;
  int process_id_ = 0;  ///< Pool: of the server process that was configured.
  std::string table_ = "txinbox_consumed_message";
  std::string restore_;  ///< Pool: a statement that restores the remembered settings.
};

}  // namespace txinbox::inline TXINBOX_ABI::backend
