#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <soci/soci.h>
#include <txinbox/lease_consumer.hpp>
#include <txinbox/message.hpp>
#include <txinbox/pool.hpp>
#include <txinbox/result.hpp>
#include <txinbox/tx_consumer.hpp>

#include "support/test_database.hpp"

namespace txinbox::test {

/// One way to consume messages. The tests make each of its steps fail.
struct Subject {
  std::string name;
  std::size_t messages;
  bool batch;
  bool pooled;
  bool leased = false;  ///< The handler runs under a lease, and not in the consumer's transaction.
  bool native = false;  ///< The consumer works on the client library's connection, without a SOCI session.
  enum class Handlers { each, at_once, pair } handlers = Handlers::each;  ///< Of a batch.
  bool sends = false;                                                     ///< The handler adds a message to the outbox.
  bool refuses = false;  ///< The handler refuses the message after it has written its rows.
  bool no_wait = false;  ///< `claim_wait` is zero: a delivery does not wait for another one of its key.
};

/// A message and a batch of three, each on a pool and on the caller's session; a message under a lease; a message on
/// the client library's connection; on a pool, also batches with a handler for all messages and with a pair of
/// handlers, a message that sends another, a message that is refused, and a message whose delivery does not wait.
const std::vector<Subject>& subjects();

/// The subjects whose handler runs once for each message, and neither sends nor refuses. The tests with the most cases
/// try only these.
std::span<const Subject> basic_subjects();

/// The subjects whose handler runs in the consumer's transaction.
std::span<const Subject> transaction_subjects();

/// The messages that `subject` consumes in one case. No other case has the same keys.
std::vector<Message> messages_for(const Subject& subject, int number);

/// How long a service's statements may wait and run. The times are short, so that a fault has an effect soon. The lease
/// is also short, because a redelivery waits for its end. On SQLite, the test makes the lease expire.
struct Waits {
  std::chrono::seconds lock{1};
  /// On OceanBase, the time of a statement includes its wait for a lock.
  std::chrono::seconds statement{on_oceanbase() ? 3 : 1};
  std::chrono::milliseconds lease{300};
};

/// A service: its connection to the database, and its consumer. After a service has lost the caller's session, the test
/// opens another service.
class Service {
 public:
  Service(const Subject&, const std::string& url, Waits = {});
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// Delivers each message once. Returns the broker's action for each.
  std::vector<Action> deliver(std::span<const Message>, const Handler&);

  /// The results of the last delivery, message by message.
  const std::vector<Result>& results() const { return results_; }

  /// Consumes a message that belongs to no case. This does the work that is done once for each connection. `valid_for`
  /// is that of the messages of the cases.
  void warm_up(std::chrono::milliseconds valid_for = {});

  /// Whether the caller's session was closed.
  bool has_lost_its_session() const { return session_ && !session_->is_connected(); }

  /// Gives the service's connection to `use`.
  void with_session(const std::function<void(soci::session&)>& use);

 private:
  std::vector<Result> consume(std::span<const Message>, const Handler&);
  std::vector<Result> consume_batch(std::span<const Message>, const Handler&);
  Result consume_one(const Message&, const Handler&);

  const Subject& subject_;
  std::optional<Pool> pool_;
  std::unique_ptr<soci::session> session_;
  std::optional<TxConsumer> consumer_;
  std::optional<LeaseConsumer> lease_consumer_;
  std::vector<Result> results_;
};

/// The consumer name of all subjects.
inline constexpr auto consumer_name = "faults";

/// The correct handler: it writes two rows for each message, and stores a result.
void write_two_rows(soci::session&, Delivery&);

/// Writes one of the two rows.
void write_row(soci::session&, const Message&, int part);

}  // namespace txinbox::test
