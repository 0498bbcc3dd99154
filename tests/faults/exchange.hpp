#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "faults/broker.hpp"
#include "faults/fault_database.hpp"
#include "faults/fault_proxy.hpp"
#include "faults/subject.hpp"

namespace txinbox::test {

/// When a delivery's faults begin.
enum class From {
  connecting,  ///< with the first byte of its connection
  delivering,  ///< when the connection and all that is kept with it are there
};

/// Where the faults of a delivery are.
enum class Grain {
  turn,         ///< where either side begins to speak: before a request, and before its reply
  packet,       ///< before each packet
  half_packet,  ///< and in the middle of each
};

/// The exchange with a server in one delivery, in which one thing goes wrong at a time.
class Exchange {
 public:
  Exchange(const FaultDatabase&, FaultProxy&, const Subject&, From);

  /// The points of a delivery in which nothing goes wrong.
  std::vector<FaultPoint> points(Grain);

  /// One case: a delivery with the fault; then, until all is settled, others without. Fails the test
  /// when the fault is not met, or the messages have not taken effect exactly once, or the service is
  /// left in disorder.
  void try_fault(const std::string& kind, FaultPoint, Fault, const std::function<bool()>& at_fault = {});

  /// The same for a process that is killed there.
  void try_kill(const std::string& kind, FaultPoint);

 private:
  void make_service();
  void check_clean(Service&);
  std::vector<Message> next_messages() { return messages_for(subject_, number_++); }

  const FaultDatabase& db_;
  FaultProxy& proxy_;
  const Subject& subject_;
  From from_;
  int number_;
  std::unique_ptr<Service> service_;  ///< The one to which the fault happens.
  Service replica_;                   ///< Another, past the proxy.
  std::string settings_when_new_;
};

/// A point in words.
std::string to_string(const FaultPoint&);

}  // namespace txinbox::test
