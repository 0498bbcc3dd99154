#include "retention/purge_target.hpp"

#include <array>

#include <fmt/format.h>

#include "backend/table_check.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

using backend::PurgeTarget;

constexpr std::array key = {PurgeTarget::Key{"consumer"}, PurgeTarget::Key{"business_key"}};
constexpr std::array key_and_hash = {PurgeTarget::Key{"consumer"}, PurgeTarget::Key{"business_key"},
                                     PurgeTarget::Key{.column = "content_hash", .is_text = false}};

std::vector<PurgeTarget> targets(Purgeable purge, const backend::Dialect& dialect) {
  switch (purge) {
    case Purgeable::consumed:
      return {{backend::consumed_message_table, "consumed_at", key, "", "state = 'consumed'"}};
    case Purgeable::failed:
      return {{backend::failed_message_table, "last_failed_at", key, "",
               fmt::format("NOT EXISTS (SELECT 1 FROM {0} c WHERE c.consumer = {1}.consumer "
                           "AND c.business_key = {1}.business_key AND c.state IN ('parked', 'torn'))",
                           dialect.table(backend::consumed_message_table), backend::failed_message_table)},
              // Rows that hold only a marker: their attempt began, and neither failed nor ended.
              {backend::failed_message_table, "running_since", key, "last_failed_at IS NULL", "1 = 1"}};
    case Purgeable::conflicts:
      return {{backend::conflicting_message_table, "last_at", key_and_hash, "", "1 = 1"}};
  }
  return {};
}

}  // namespace

std::vector<PurgeTarget> purge_targets(Purgeable purge, const backend::Dialect& dialect, std::string_view consumer) {
  auto all = targets(purge, dialect);
  for (PurgeTarget& each : all) {
    if (!consumer.empty()) each.matches += " AND consumer = " + dialect.text(consumer);
  }
  return all;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
