#pragma once

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

#include <txinbox/run.hpp>

namespace txinbox::test {

/// The real broker that brokers.sh has started for this test program, as the tests of all components see it.
class BrokerUnderTest {
 public:
  virtual ~BrokerUnderTest() = default;

  /// A new queue or topic, and one for its dead letters. Returns its URL for the command.
  virtual std::string create(const std::string& name) = 0;
  virtual void publish(const std::string& name, const std::string& body, const std::string& key) = 0;

  /// Waits until the broker has what was published.
  virtual void flush() = 0;

  /// The name of the dead letters' place; empty if the broker has its own.
  virtual std::string dead_letters_of(const std::string& name) = 0;

  /// How long nothing comes, when nothing is left: longer than the broker keeps the messages of a consumer that died.
  virtual std::string idle_exit() const { return "4s"; }

  void kill() const { control("kill"); }
  void start() const { control("start", variable("TXINBOX_BROKER_PORT")); }

 protected:
  /// Runs the broker's script.
  static void control(const std::string& what, const std::string& arguments = {}) {
    const std::string command = variable("TXINBOX_BROKER_SCRIPT") + " " + what + " " +
                                variable("TXINBOX_BROKER_FOLDER") + " " + arguments +
                                (arguments.find('>') == std::string::npos ? " >&2" : "");
    if (std::system(command.c_str()) != 0) throw std::runtime_error("the broker: " + what);  // NOLINT(cert-env33-c)
  }

  static std::string variable(const char* name) {
    const char* value = std::getenv(name);
    if (value == nullptr) throw std::runtime_error(std::string(name) + " is not set; brokers.sh sets it");
    return value;
  }
};

/// "127.0.0.1:PORT" of the broker.
inline std::string broker_address() {
  const char* port = std::getenv("TXINBOX_BROKER_PORT");
  if (port == nullptr) throw std::runtime_error("TXINBOX_BROKER_PORT is not set; brokers.sh sets it");
  return std::string("127.0.0.1:") + port;
}

/// How often a test kills: few times in an ordinary run, TXINBOX_BROKER_KILLS times in a long one.
inline int kills(int few) {
  const char* wanted = std::getenv("TXINBOX_BROKER_KILLS");
  return wanted == nullptr ? few : std::atoi(wanted);
}

}  // namespace txinbox::test
