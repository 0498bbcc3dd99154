#pragma once

// The connections and sessions of the simulated database, as the library uses them.

#include <memory>
#include <utility>
#include <vector>

#include "backend/database.hpp"
#include "backend/session.hpp"
#include "sim/database/server.hpp"

namespace txinbox::sim {

/// A connection of a process. It belongs to a pool.
class SimConnection final : public backend::NativeConnection {
 public:
  SimConnection(const backend::Database& database, std::unique_ptr<ServerSession> session)
      : backend::NativeConnection(database), session_(std::move(session)) {}
  void* handle() const noexcept override { return session_->handle(); }
  const void* identity() const noexcept override { return session_.get(); }
  ServerSession& session() const noexcept { return *session_; }

 private:
  const std::unique_ptr<ServerSession> session_;
};

ServerSession& session_of(const backend::NativeConnection&);

std::unique_ptr<backend::Session> make_sim_session(const Personality&, backend::ConnectionPtr);

/// The rows as the library reads them.
std::vector<backend::Row> as_rows(const std::vector<Values>&);

}  // namespace txinbox::sim
