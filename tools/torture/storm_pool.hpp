#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include <txinbox/pool.hpp>

#include "console/database_option.hpp"

namespace txinbox::torture {

/// How long a worker's statement waits for a lock. Longer than a server's `deadlock_timeout`, or its
/// deadlocks would end as lock time-outs; short where one writer keeps out all others.
std::chrono::milliseconds worker_lock_timeout(const backend::Database& database);

/// The connections of a worker process. `name`: how the server lists its sessions.
Pool open_worker_pool(const cli::DatabaseOption& option, const std::string& name, std::size_t connections);

/// The parent's one connection, which may read and remove everything at the end.
Pool open_parent_pool(const cli::DatabaseOption& option);

}  // namespace txinbox::torture
