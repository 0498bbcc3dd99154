#pragma once

#include <chrono>
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
  turn,         ///< where a side begins to send: before a request, and before its reply
  packet,       ///< before each packet
  half_packet,  ///< and in the middle of each
};

/// The exchange with a server in one delivery, with one fault at a time.
class Exchange {
 public:
  /// `valid_for`: of the messages.
  Exchange(const FaultDatabase&, FaultProxy&, const Subject&, From, std::chrono::milliseconds valid_for = {});

  /// The points of a delivery without a fault.
  std::vector<FaultPoint> points(Grain);

  /// One case: a delivery with the fault, then deliveries without it until all is settled. Fails the test when the
  /// fault did not occur, when a message did not take effect exactly once, or when the service's session is not clean.
  void try_fault(const std::string& kind, FaultPoint, Fault, const std::function<bool()>& at_fault = {});

  /// One case: one delivery with the fault, by a service with a pool. Fails the test when a message took effect in part
  /// or more than once, or when it did not take effect and is acknowledged.
  void try_one_delivery(const std::string& kind, FaultPoint, Fault);

  /// The same as `try_fault` for a process that is killed there.
  void try_kill(const std::string& kind, FaultPoint);

 private:
  void prepare_service();
  void make_service();
  void check_clean(Service&);
  std::vector<Message> next_messages();

  const FaultDatabase& db_;
  FaultProxy& proxy_;
  const Subject& subject_;
  From from_;
  std::chrono::milliseconds valid_for_;
  int number_;
  std::unique_ptr<Service> service_;  ///< The fault occurs in this one.
  Service replica_;                   ///< Another service, without the proxy.
  std::string settings_when_new_;
};

/// A point in words.
std::string to_string(const FaultPoint&);

}  // namespace txinbox::test
