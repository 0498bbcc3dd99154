#include "torture/lease_checker.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace txinbox::torture {
namespace {

std::string describe(const LedgerLine& line) { return fmt::format("fence {}: run {}", line.fence, line.run); }

}  // namespace

std::vector<Imbalance> check_leased(LeasedKey key) {
  std::vector<Imbalance> wrong;
  const auto add_imbalance = [&](std::string what, std::string expected, std::string found) {
    wrong.push_back({key.business_key, std::move(what), std::move(expected), std::move(found)});
  };
  std::ranges::sort(key.effects, {}, [](const LedgerLine* line) { return line->place; });
  std::int64_t place = 0;
  const LedgerLine* last = nullptr;
  for (const LedgerLine* line : key.effects) {
    if (line->place != ++place) {
      add_imbalance("the number of an effect", std::to_string(place), std::to_string(line->place));
    }
    if (last != nullptr && line->fence <= last->fence) {
      add_imbalance("an older effect after a newer one", "more than " + describe(*last), describe(*line));
    }
    last = line;
  }
  if (key.resource.effects != place) {
    add_imbalance("the effects that the resource accepted", std::to_string(place),
                  std::to_string(key.resource.effects));
  }
  if (last != nullptr && key.resource.fence != last->fence) {
    add_imbalance("the fence that the resource has seen", std::to_string(last->fence),
                  std::to_string(key.resource.fence));
  }
  if (key.row != nullptr && key.row->state == "consumed" && (last == nullptr || key.row->fence != last->fence)) {
    add_imbalance("the lease that completed the key", last == nullptr ? "one with an effect" : describe(*last),
                  fmt::format("fence {}", key.row->fence));
  }
  return wrong;
}

std::string completing_run(const LeasedKey& key) {
  if (key.row == nullptr) return {};
  const auto at = std::ranges::find(key.effects, key.row->fence, &LedgerLine::fence);
  return at == key.effects.end() ? std::string() : (*at)->run;
}

}  // namespace txinbox::torture
