#pragma once

#include <string>

#include "torture/plan.hpp"

namespace soci {
class session;
}

namespace txinbox::torture {

/// Adds the messages of a key to the outbox. The handler must have changed both accounts before. So it holds their
/// locks, and the messages of an account are added in the order of the commits.
///
/// Errors: database errors.
void add_messages(soci::session& sql, const KeyPlan& key, const std::string& run);

}  // namespace txinbox::torture
