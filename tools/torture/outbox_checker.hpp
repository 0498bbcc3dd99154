#pragma once

#include <cstdint>
#include <vector>

#include "torture/evidence.hpp"
#include "torture/imbalance.hpp"
#include "torture/outbox_sink.hpp"
#include "torture/plan.hpp"

namespace txinbox::torture {

/// The messages in the sink.
struct OutboxFigures {
  std::uint64_t messages = 0;         ///< Without repetitions.
  std::uint64_t published_again = 0;  ///< Repetitions with the same ids.
};

/// Compares the sink with the ledger. The sink must have each message of each run that took effect, and no other
/// message. A message must have one id, even if it came several times. The messages of an account must come for the
/// first time in the order of the transactions that added them.
///
/// @param keys how many keys were sent. @param left how many of the storm's messages are still in the outbox.
std::vector<Imbalance> check_outbox(const Plan& plan, std::uint64_t keys, const std::vector<LedgerLine>& ledger,
                                    const std::vector<Published>& published, std::uint64_t left);

OutboxFigures outbox_figures(const std::vector<Published>& published);

}  // namespace txinbox::torture
