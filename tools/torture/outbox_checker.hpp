#pragma once

#include <cstdint>
#include <vector>

#include "torture/evidence.hpp"
#include "torture/imbalance.hpp"
#include "torture/outbox_sink.hpp"
#include "torture/plan.hpp"

namespace txinbox::torture {

/// What the sink took.
struct OutboxFigures {
  std::uint64_t messages = 0;         ///< Different ones.
  std::uint64_t published_again = 0;  ///< Repeats, under the same ids.
};

/// Compares what the sink took with the ledger. It has each message of each run that took effect, and no other message.
/// A message has one id, also if it came again. Messages of one account came for the first time in the order of the
/// transactions that added them.
///
/// @param keys how many keys were sent.
/// @param left how many of the storm's messages are still in the outbox.
std::vector<Imbalance> check_outbox(const Plan& plan, std::uint64_t keys, const std::vector<LedgerLine>& ledger,
                                    const std::vector<Published>& published, std::uint64_t left);

OutboxFigures outbox_figures(const std::vector<Published>& published);

}  // namespace txinbox::torture
