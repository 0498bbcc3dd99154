#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan.hpp"

namespace soci {
class session;
}

namespace txinbox::torture {

/// One effect, as the ledger has it.
struct LedgerLine {
  std::string run;
  std::string business_key;
  Transfer transfer;
};

/// One row of the consumer in the inbox.
struct InboxRow {
  std::string business_key;
  std::string message_id;
  std::string state;
  std::optional<std::string> stored = {};
};

/// What the database holds when the storm is over.
struct Evidence {
  std::vector<LedgerLine> ledger;
  std::vector<InboxRow> inbox;
  std::map<int, std::int64_t> balances;
};

/// Errors: a database error as it was.
Evidence read_evidence(soci::session& sql);

}  // namespace txinbox::torture
