#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <txinbox/failed_messages.hpp>

#include "torture/imbalance.hpp"
#include "torture/plan.hpp"

namespace txinbox::torture {

/// The messages that redrive has left at the end of a storm.
struct RedriveRest {
  std::size_t letters = 0;                 ///< Dead letters.
  std::size_t outbox = 0;                  ///< Messages of the storm in the outbox.
  std::vector<FailedMessage> failed = {};  ///< The list of `list_failed` for the storm's consumer.
};

/// Nothing must be left. A failed message of a key that this storm has not sent is from an earlier storm, and is
/// ignored. @param keys how many keys were sent.
std::vector<Imbalance> check_redrive(std::uint64_t keys, const RedriveRest& rest);

}  // namespace txinbox::torture
