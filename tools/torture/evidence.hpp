#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "torture/plan.hpp"

namespace soci {
class session;
}

namespace txinbox::torture {

/// One effect: a line of the ledger.
struct LedgerLine {
  std::string run;
  std::string business_key;
  Transfer transfer;
  std::int64_t fence = 0;  ///< The fence of its lease; 0 without a lease.
  std::int64_t place = 0;  ///< Its number among the effects of its key, from 1.
};

/// One row of the storm's consumer in the inbox.
struct InboxRow {
  std::string business_key;
  std::string message_id;
  std::string state;
  std::optional<std::string> stored = {};
  std::int64_t fence = 0;
};

/// The resource's state for one key.
struct ResourceRow {
  std::int64_t fence = 0;  ///< The greatest fence that the resource has seen.
  std::int64_t effects = 0;
};

/// The contents of the database at the end of the storm.
struct Evidence {
  std::vector<LedgerLine> ledger;
  std::vector<InboxRow> inbox;
  std::map<int, std::int64_t> balances;
  std::map<std::string, ResourceRow> resources = {};
};

/// Errors: database errors.
Evidence read_evidence(soci::session& sql);

}  // namespace txinbox::torture
