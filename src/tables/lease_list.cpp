#include "tables/lease_list.hpp"

#include <fmt/format.h>

#include "backend/table_check.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

std::string LeaseList::table() const {
  return sql_.table(backend::consumed_message_table) +
         (index_ == Index::used ? sql_.by_index(backend::lease_index) : std::string());
}

std::string LeaseList::consumer() const { return index_ == Index::used ? "coalesce(consumer, '')" : "consumer"; }

std::string LeaseList::condition(std::string_view consumer_name) const {
  const std::string leases = "state = 'consuming' AND lease_owner IS NOT NULL";
  return consumer_name.empty() ? leases : fmt::format("{} AND {} = {}", leases, consumer(), sql_.text(consumer_name));
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
