#include "torture/bad_deployment.hpp"

#include "torture/dice.hpp"

namespace txinbox::torture {
namespace {

constexpr std::uint64_t keys_of_deployment = 10;
constexpr unsigned fails_for_all = 3'000;
constexpr unsigned fails_for_some = 4'000;

}  // namespace

bool fails_until_repair(std::uint64_t seed, std::uint64_t key) {
  const auto drawn = Dice(seed, {10, key / keys_of_deployment}).below(10'000);
  if (drawn < fails_for_all) return true;
  return drawn < fails_for_all + fails_for_some && Dice(seed, {11, key}).chance(5'000);
}

bool keeps_payload(std::uint64_t seed, std::uint64_t key) { return Dice(seed, {12, key}).chance(3'000); }

bool is_refused_at_first(std::uint64_t seed, std::uint64_t key) { return Dice(seed, {13, key}).chance(2'000); }

}  // namespace txinbox::torture
