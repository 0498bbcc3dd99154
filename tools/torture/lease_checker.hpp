#pragma once

#include <string>
#include <vector>

#include "torture/evidence.hpp"
#include "torture/imbalance.hpp"

namespace txinbox::torture {

/// What the database has of one key whose handlers ran under leases.
struct LeasedKey {
  std::string business_key;
  std::vector<const LedgerLine*> effects;
  const InboxRow* row = nullptr;  ///< Null: there is none.
  ResourceRow resource;
};

/// What is wrong with the key's effects. Each effect must have a greater fence than the one before it. The resource
/// must have seen all of them. The last one must be that of the lease that completed the key.
std::vector<Imbalance> check_leased(LeasedKey key);

/// The run whose effect came with the lease that completed the key; empty when there is none.
std::string completing_run(const LeasedKey& key);

}  // namespace txinbox::torture
