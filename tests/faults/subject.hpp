#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <soci/soci.h>
#include <txinbox/message.hpp>
#include <txinbox/pool.hpp>
#include <txinbox/result.hpp>
#include <txinbox/tx_consumer.hpp>

namespace txinbox::test {

/// One way to consume some messages, whose every step is to fail. A new kind of consumer is one more.
struct Subject {
  std::string name;
  std::size_t messages;
  bool batch;
  bool pooled;
};

/// A message and a batch of three, each in a pool and on a session of the caller's.
const std::vector<Subject>& subjects();

/// The messages that `subject` consumes in one case. Their keys are no other case's.
std::vector<Message> messages_for(const Subject& subject, int number);

/// What a service holds: its connection to the database, and its consumer. One that owns its session
/// opens another service when that is lost.
class Service {
 public:
  /// Short waits, so that a fault shows soon.
  Service(const Subject&, const std::string& url);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// One delivery of each. Returns what the broker is to do with each.
  std::vector<Action> deliver(std::span<const Message>, const Handler&);

  /// Consumes a new message of no case, so that what is done once for a connection has been done.
  void warm_up();

  /// Gives the service's connection to `use`.
  void with_session(const std::function<void(soci::session&)>& use);

 private:
  Action deliver_one(const Message&, const Handler&);

  bool batch_;
  std::optional<Pool> pool_;
  std::unique_ptr<soci::session> session_;
  std::optional<TxConsumer> consumer_;
};

/// The honest handler: two rows for each message, and a result.
void write_two_rows(soci::session&, Delivery&);

/// One of them.
void write_row(soci::session&, const Message&, int part);

}  // namespace txinbox::test
