#pragma once

#include <memory>
#include <string>
#include <vector>

#include <txinbox/pool.hpp>
#include <txinbox/tx_consumer.hpp>

#include "torture/messages.hpp"
#include "torture/plan.hpp"
#include "torture/transfer_handler.hpp"

namespace txinbox::torture {

/// The consumer under test: a kind of the library's, or one that is broken on purpose to show that the checker detects
/// it.
class Subject {
 public:
  Subject() = default;
  virtual ~Subject() = default;
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  /// Consumes the messages by one call; one answer for each, in order. Threads: any number.
  virtual std::vector<Answer> consume(const std::vector<Message>& messages, const Assignment& assignment,
                                      TransferHandler& handler, Counters& met) = 0;
};

struct SubjectOptions {
  bool remembers = false;      ///< With `recent_keys`.
  bool has_heartbeat = false;  ///< Of a lease.
  bool waits = false;          ///< For another worker's result, a little.
  int max_attempts = 6;
  std::stop_token stop = {};
};

/// The kinds by name. "tx" and "outbox" are the library's `TxConsumer`, and "lease" is its `LeaseConsumer`. "dedup"
/// runs each delivery without a claim. "acknowledge" acknowledges every delivery. "fence" is "lease" with handlers that
/// ignore the fence. "delete" and "order" are "outbox", whose relays are broken.
///
/// Errors: `cli::UsageError` for another name; as `TxConsumer`.
std::unique_ptr<Subject> make_subject(const std::string& kind, Pool& pool, SubjectOptions options);

/// Whether the kind runs its handlers under leases: at least once, and not exactly once.
bool is_leased(const std::string& kind);

/// Whether the kind's handlers add messages to the outbox.
bool has_outbox(const std::string& kind);

}  // namespace txinbox::torture
