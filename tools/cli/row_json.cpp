#include "cli/row_json.hpp"

#include "shared/row_json.hpp"

namespace txinbox::cli {

using component::json_of;
using component::text_of;

std::string row_json(const std::vector<LeaseInfo>& rows) { return text_of(json_of(rows)); }
std::string row_json(const std::vector<ConflictingContent>& rows) { return text_of(json_of(rows)); }
std::string row_json(const std::vector<OutboxMessageInfo>& rows) { return text_of(json_of(rows)); }
std::string row_json(const std::vector<AuditRecord>& rows) { return text_of(json_of(rows)); }
std::string row_json(const std::vector<Finding>& rows) { return text_of(json_of(rows)); }
std::string row_json(const OutboxStatus& status) { return text_of(json_of(status)); }
std::string row_json(const ConsumedMessage& row) { return text_of(json_of(row)); }

std::string row_json(const std::vector<FailedMessage>& rows, bool payloads) {
  component::RowJson list = json_of(rows);
  for (std::size_t i = 0; payloads && i < rows.size(); ++i) {
    list[i]["payload"] = nullptr;
    if (rows[i].payload) component::add_payload(list[i], *rows[i].payload);
  }
  return text_of(list);
}

}  // namespace txinbox::cli
