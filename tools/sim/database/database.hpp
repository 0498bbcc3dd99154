#pragma once

// The simulated database, as the library's pool and consumers use it.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/connection_ref.hpp>

#include "backend/database.hpp"
#include "pool/pool_state.hpp"
#include "sim/database/server.hpp"

namespace txinbox::sim {

/// A database of which each pool has connections of its own process.
class SimDatabase final : public backend::Database {
 public:
  explicit SimDatabase(Server& server);

  Server& server() const noexcept { return server_; }

  /// Opens a pool of the process that has the turn.
  Pool open_pool(PoolOptions) const;

  /// Opens a connection of the process that has the turn.
  ///
  /// Errors: `SimulatedError` if the server is away.
  backend::ConnectionPtr connect() const;

  /// The same, for the functions of operators.
  ConnectionRef connect_caller() const;

  std::string_view name() const noexcept override { return sqlite3_.name(); }
  backend::ErrorMeaning meaning_of(const std::string& code) const noexcept override {
    return sqlite3_.meaning_of(code);
  }
  backend::ErrorDescription describe(const std::string& code) const override { return sqlite3_.describe(code); }
  std::unique_ptr<backend::Session> attach(backend::ConnectionPtr, backend::Ownership) const override;
  std::unique_ptr<backend::Catalog> catalog(backend::ConnectionPtr) const override;
  void refuse_unopened(void*) const override {}
  std::vector<backend::Row> query(const backend::NativeConnection&, const std::string& sql,
                                  std::size_t columns) const override;
  std::size_t run(const backend::NativeConnection&, const std::string& sql) const override;
  std::unique_ptr<backend::Dialect> dialect(const std::string& schema) const override;

 private:
  Server& server_;
  const backend::Database& sqlite3_;  ///< Its tables and names are used.
};

}  // namespace txinbox::sim
