#include "support/lease_orders.hpp"

#include <algorithm>
#include <span>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "support/every_order.hpp"

namespace txinbox::test {

namespace {

constexpr bool is_of_store(LeaseTwist twist) { return twist <= LeaseTwist::slow_reply; }

std::string text_of(HandlerKind handler, const std::vector<LeaseTwistAt>& twists) {
  std::string order;
  for (const LeaseTwistAt& each : twists) {
    order += fmt::format("{{{}, LeaseTwist::{}}}, ", each.point, to_string(each.what));
  }
  return fmt::format("handler {}, twists {}", to_string(handler), order);
}

}  // namespace

int try_lease_orders(int count) {
  using Things = std::span<const LeaseTwist>;
  const Things all(all_lease_twists);
  const Things elsewhere(std::ranges::find_if_not(all, is_of_store), all.end());
  int tried = 0;
  for (const HandlerKind handler : all_handlers) {
    tried += try_every_order_of_points<LeaseTwistAt>(count, [&](const std::vector<LeaseTwistAt>& twists) {
      LeaseWorld world(handler);
      world.run(twists);
      std::vector<Things> things_at;
      if (!world.problem().empty()) {
        FAIL_CHECK("with ", text_of(handler, twists), world.problem());
        return things_at;
      }
      for (const bool is_call : world.points()) things_at.push_back(is_call ? all : elsewhere);
      return things_at;
    });
  }
  return tried;
}

std::string wrong_with(HandlerKind handler, const std::vector<LeaseTwistAt>& twists) {
  LeaseWorld world(handler);
  world.run(twists);
  return world.problem();
}

}  // namespace txinbox::test
