#pragma once

#include <string>
#include <vector>

#include "torture/evidence.hpp"
#include "torture/imbalance.hpp"

namespace txinbox::torture {

/// What was found of one key whose handlers ran under leases.
struct LeasedKey {
  std::string business_key;
  std::vector<const LedgerLine*> effects;
  const InboxRow* row = nullptr;  ///< Null: there is none.
  ResourceRow resource;
};

/// What is wrong with its effects: each came with a greater fence than the one before it, the resource has
/// seen them all, and the last is that of the lease which completed the key.
std::vector<Imbalance> check_leased(LeasedKey key);

/// The run whose effect came with the lease that completed the key; empty when there is none.
std::string completing_run(const LeasedKey& key);

}  // namespace txinbox::torture
