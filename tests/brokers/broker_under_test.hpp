#pragma once

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <txinbox/run.hpp>

#include "support/environment.hpp"

namespace txinbox::test {

/// The real broker that brokers.sh has started for this test program. The tests of all components use this interface.
class BrokerUnderTest {
 public:
  virtual ~BrokerUnderTest() = default;

  /// Creates a queue or topic, and one for its dead letters. Returns its URL for the command.
  virtual std::string create(const std::string& name) = 0;
  virtual void publish(const std::string& name, const std::string& body, const std::string& key) = 0;

  /// Waits until the broker has all published messages.
  virtual void flush() = 0;

  /// The name of the queue or topic for dead letters. Empty if the broker handles dead letters itself.
  virtual std::string dead_letters_of(const std::string& name) = 0;

  /// The options of `txinbox redrive` for these dead letters.
  virtual std::vector<std::string> redrive_from(const std::string& name) = 0;

  /// A consumer ends when it has got no message for this time. It is longer than the time after which the broker
  /// redelivers the messages of a consumer that was killed.
  virtual std::string idle_exit() const { return "4s"; }

  void kill() const { control("kill"); }
  void start() const { control("start", variable("TXINBOX_BROKER_PORT")); }

 protected:
  /// Runs the broker's script.
  static void control(const std::string& what, const std::string& arguments = {}) {
    const std::string command = variable("TXINBOX_BROKER_SCRIPT") + " " + what + " " +
                                variable("TXINBOX_BROKER_FOLDER") + " " + arguments +
                                (arguments.find('>') == std::string::npos ? " >&2" : "");
    if (std::system(command.c_str()) != 0) throw std::runtime_error("broker script: " + what);  // NOLINT(cert-env33-c)
  }
};

/// "127.0.0.1:PORT" of the broker.
inline std::string broker_address() { return "127.0.0.1:" + variable("TXINBOX_BROKER_PORT"); }

/// How often a test kills a process: `few` times in an ordinary run, TXINBOX_BROKER_KILLS times in a long run.
inline int kills(int few) {
  const char* wanted = std::getenv("TXINBOX_BROKER_KILLS");
  return wanted == nullptr ? few : std::atoi(wanted);
}

}  // namespace txinbox::test
