#pragma once

#include <memory>
#include <string>

#include "backend/dialect.hpp"
#include "sim/database/personality.hpp"

namespace txinbox::sim {

/// The syntax of SQLite with the simulated server's clock.
std::unique_ptr<backend::Dialect> make_sim_dialect(const Personality&);

/// SQLite's virtual tables know no ON CONFLICT. So the dialect ends an INSERT with a mark, and this function makes
/// INSERT OR IGNORE or INSERT OR REPLACE of it.
std::string resolve_conflict_mark(const std::string& sql);

}  // namespace txinbox::sim
