#pragma once

#include <string>

#include "torture/plan.hpp"

namespace soci {
class session;
}

namespace txinbox::torture {

/// The key of the messages of a transfer: the account that it takes from.
std::string outbox_key(const Transfer& transfer);

/// Adds the messages of a key to the outbox, for a handler that has changed both accounts. It has their locks, so that
/// the messages of an account are added in the order of the commits.
///
/// Errors: a database error as it was.
void add_messages(soci::session& sql, const KeyPlan& key, const std::string& run);

}  // namespace txinbox::torture
