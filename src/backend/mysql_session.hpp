#pragma once

#include <string>

#include "backend/backend.hpp"
#include "backend/mysql_native.hpp"

namespace txinbox::inline TXINBOX_ABI::backend {

/// The inbox on one connection to MariaDB or MySQL.
///
/// The guard is a savepoint, with autocommit off while it stands: what a handler runs after it
/// swallowed a deadlock would otherwise commit by itself. MariaDB takes the opening and the closing
/// as one compound statement each; MySQL, and a caller's session, get them one by one.
class MysqlSession final : public Session {
 public:
  MysqlSession(soci::session&, Ownership);

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
  bool may_have_committed() const noexcept override { return commit_sent_; }
  RollbackStatus roll_back(const Token& guard) noexcept override;
  bool mark_torn(const ClaimRow&) override;

 private:
  MYSQL* connection();
  bool in_one_statement() const noexcept { return pooled_ && is_mariadb_; }
  std::string insert_sql(const ClaimRow&) const;
  std::string store_sql(const StoredResult&) const;
  ClaimReply reply_to(unsigned error, const ClaimRow&);
  bool restore(MYSQL*) noexcept;
  bool restore_rest(MYSQL*) noexcept;
  bool restore_after_compound(MYSQL*) noexcept;

  soci::session& sql_;
  const bool pooled_;
  const bool is_mariadb_;
  unsigned long thread_id_ = 0;  ///< Pool: of the connection that was configured; 0: not to be used again.
  bool commit_sent_ = false;
  bool autocommit_ = true;  ///< What the session had, and gets back.
  std::string table_ = "txinbox_consumed_message";
  std::string restore_ = "SET autocommit = 1";  ///< One SET statement.
  std::string restore_in_compound_ = restore_;  ///< The same, as far as a compound statement can.
  std::string restore_role_;                    ///< Empty where the user has no roles.
  std::string database_;                        ///< Pool: the session's default database.
};

}  // namespace txinbox::inline TXINBOX_ABI::backend
