#include "torture/plan.hpp"

#include <fmt/format.h>

#include "torture/dice.hpp"

namespace txinbox::torture {

std::string Plan::business_key(std::uint64_t index) {
  constexpr std::uint64_t group_size = 6;
  constexpr std::size_t longest = 255;
  const std::uint64_t group = index / group_size;
  switch (index % group_size) {
    case 0:
      return fmt::format("order-{}", group);
    case 1:
      return fmt::format("Order-{}", group);
    case 2:
      return fmt::format("order-{} ", group);
    case 3:
      return fmt::format("\xc3\xb3rder-{}", group);  // an accent
    default: {
      // As long as a key may be. The two differ only in the last byte.
      std::string key = fmt::format("order-{}-", group);
      key.append(longest - 1 - key.size(), '.');
      return key + (index % group_size == 4 ? 'a' : 'b');
    }
  }
}

KeyPlan Plan::key(std::uint64_t index) const {
  Dice dice(seed_, {1, index});
  KeyPlan plan;
  plan.copies = 1 + static_cast<int>(dice.below(10));
  plan.is_hot = dice.chance(600);
  const int accounts = plan.is_hot ? hot_account_count : account_count;
  plan.transfer.from = static_cast<int>(dice.below(static_cast<std::uint64_t>(accounts)));
  plan.transfer.to = static_cast<int>(dice.below(static_cast<std::uint64_t>(accounts - 1)));
  if (plan.transfer.to >= plan.transfer.from) ++plan.transfer.to;
  plan.transfer.amount = 1 + static_cast<std::int64_t>(dice.below(100));
  plan.stores = dice.chance(3'000);
  plan.has_content = dice.chance(5'000);
  plan.is_prepared = dice.chance(5'000);
  plan.messages = static_cast<unsigned>(dice.below(4));
  plan.business_key = business_key(index);
  return plan;
}

}  // namespace txinbox::torture
