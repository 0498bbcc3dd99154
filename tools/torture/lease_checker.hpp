#pragma once

#include <string>
#include <vector>

#include "torture/evidence.hpp"
#include "torture/imbalance.hpp"

namespace txinbox::torture {

/// The rows of the database for one key whose handlers ran under leases.
struct LeasedKey {
  std::string business_key;
  std::vector<const LedgerLine*> effects;
  const InboxRow* row = nullptr;  ///< Null if there is none.
  ResourceRow resource;
};

/// Checks the effects of a key. Each effect must have a greater fence than the one before it. The resource must have
/// seen all of them. The fence of the last one must be that of the lease that completed the key.
std::vector<Imbalance> check_leased(LeasedKey key);

/// The run whose effect has the fence of the lease that completed the key. Empty if there is none.
std::string completing_run(const LeasedKey& key);

}  // namespace txinbox::torture
