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

/// One effect, as the ledger has it.
struct LedgerLine {
  std::string run;
  std::string business_key;
  Transfer transfer;
  std::int64_t fence = 0;  ///< Of its lease; 0 of one in a transaction.
  std::int64_t place = 0;  ///< Among the effects of its key, from 1.
};

/// One row of the consumer in the inbox.
struct InboxRow {
  std::string business_key;
  std::string message_id;
  std::string state;
  std::optional<std::string> stored = {};
  std::int64_t fence = 0;
};

/// The state of the resource for one key.
struct ResourceRow {
  std::int64_t fence = 0;  ///< The greatest, if it was asked.
  std::int64_t effects = 0;
};

/// What the database holds when the storm is over.
struct Evidence {
  std::vector<LedgerLine> ledger;
  std::vector<InboxRow> inbox;
  std::map<int, std::int64_t> balances;
  std::map<std::string, ResourceRow> resources = {};
};

/// Errors: a database error as it was.
Evidence read_evidence(soci::session& sql);

}  // namespace txinbox::torture
