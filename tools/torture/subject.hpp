#pragma once

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <txinbox/pool.hpp>
#include <txinbox/result.hpp>
#include <txinbox/tx_consumer.hpp>

#include "torture/messages.hpp"
#include "torture/plan.hpp"
#include "torture/transfer_handler.hpp"

namespace txinbox::torture {

/// The consumer under test: one of the library, or one that is broken on purpose to show that the checker finds this.
class Subject {
 public:
  Subject() = default;
  virtual ~Subject() = default;
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  /// Consumes the messages by one call. Returns one answer for each message, in order.
  ///
  /// Threads: any number.
  virtual std::vector<Answer> consume(const std::vector<Message>& messages, const Assignment& assignment,
                                      TransferHandler& handler, Counters& met) = 0;
};

struct SubjectOptions {
  bool remembers = false;      ///< With `recent_keys`.
  bool has_heartbeat = false;  ///< Of a lease.
  bool waits = false;          ///< A short wait for the result of another worker.
  int max_attempts = 6;        ///< Of a transaction.
  int parks_after = 0;         ///< `ConsumerOptions::max_attempts`.
  std::stop_token stop = {};
};

/// The kinds by name. "tx" and "outbox" are the library's `TxConsumer`, and "lease" is its `LeaseConsumer`. "dedup"
/// runs each delivery without a claim. "acknowledge" acknowledges every delivery. "fence" is "lease" with handlers that
/// ignore the fence. "delete" and "order" are "outbox" with relays that are broken. "redrive" is "tx" with operators,
/// and "early" is "redrive" with operators that are broken.
///
/// Errors: `cli::UsageError` for another name; as `TxConsumer`.
std::unique_ptr<Subject> make_subject(const std::string& kind, Pool& pool, SubjectOptions options);

/// Whether the kind runs its handlers under leases: at least once, and not exactly once.
bool is_leased(const std::string& kind);

/// Whether the kind's handlers add messages to the outbox.
bool has_outbox(const std::string& kind);

/// Whether messages of the kind are parked, and operators run `redrive`.
bool has_redrive(const std::string& kind);

/// Returns the answer of a worker to the broker for a result, or for an error that `consume` threw. `is_planned`: the
/// handler failed on purpose.
Answer answer_for(const Result& result, bool is_planned);
Answer answer_for(const std::exception_ptr& error, bool is_planned);

}  // namespace txinbox::torture
