#pragma once

// The JSON of rows for --json. One file makes it, because the JSON library's header takes seconds to compile.

#include <string>
#include <vector>

#include <txinbox/failed_messages.hpp>
#include <txinbox/finding.hpp>
#include <txinbox/inspect.hpp>
#include <txinbox/operations.hpp>
#include <txinbox/outbox_messages.hpp>

namespace txinbox::cli {

std::string row_json(const std::vector<LeaseInfo>&);
std::string row_json(const std::vector<ConflictingContent>&);
std::string row_json(const std::vector<OutboxMessageInfo>&);
std::string row_json(const std::vector<AuditRecord>&);
std::string row_json(const std::vector<Finding>&);
std::string row_json(const OutboxStatus&);
std::string row_json(const ConsumedMessage&);

/// `payloads`: each row has `payload`, null if none is stored.
std::string row_json(const std::vector<FailedMessage>&, bool payloads);

}  // namespace txinbox::cli
