#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <txinbox/pool.hpp>

#include "console/database_option.hpp"

namespace txinbox::torture {

/// How long a worker's statement waits for a lock. On servers, longer than `deadlock_timeout`, so that a deadlock does
/// not end as a lock time-out. Short on databases with only one writer at a time.
std::chrono::milliseconds worker_lock_timeout(const backend::Database& database);

/// The connections of a worker process. `name`: the name of its sessions in the server's list.
Pool open_worker_pool(const cli::DatabaseOption& option, const std::string& name, std::size_t connections);

/// The databases whose outbox relays publish: that of `option`, or one for each of its shards.
std::vector<std::string> databases_of_relays(soci::session& sql, const cli::DatabaseOption& option);

/// The parent's one connection, which may read and remove everything at the end.
Pool open_parent_pool(const cli::DatabaseOption& option);

}  // namespace txinbox::torture
