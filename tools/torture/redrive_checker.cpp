#include "torture/redrive_checker.hpp"

#include <string>
#include <unordered_set>

#include <fmt/format.h>

namespace txinbox::torture {

std::vector<Imbalance> check_redrive(std::uint64_t keys, const RedriveRest& rest) {
  std::vector<Imbalance> wrong;
  if (rest.letters != 0) {
    wrong.push_back({"the dead-letter queue", "dead letters that are left", "0", std::to_string(rest.letters)});
  }
  if (rest.outbox != 0) {
    wrong.push_back({"the outbox", "messages that were never published", "0", std::to_string(rest.outbox)});
  }
  std::unordered_set<std::string> sent;
  for (std::uint64_t i = 0; i < keys; ++i) sent.insert(Plan::business_key(i));
  for (const FailedMessage& each : rest.failed) {
    if (!sent.contains(each.business_key)) continue;
    wrong.push_back({each.business_key, "a failed message that is left", "none",
                     fmt::format("{}, {} attempts", to_string(each.state), each.attempts)});
  }
  return wrong;
}

}  // namespace txinbox::torture
