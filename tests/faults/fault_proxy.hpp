#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "faults/packet_splitter.hpp"
#include "support/relay.hpp"

namespace txinbox::test {

/// Where in an exchange a fault happens: how much of which packet has passed.
struct FaultPoint {
  /// None of it, or half of it. All of it is none of the next one's.
  enum class Part { none, half };

  Direction direction;
  int packet;  ///< Counted from 0, in its direction, over all connections since `arm`.
  Part part = Part::none;
};

/// A packet that has passed.
struct Passed {
  Direction direction;
  int packet;
  bool opens_turn;  ///< The first after the other side has spoken.
};

/// The fault that happens there.
enum class Fault {
  cut,           ///< The connection ends.
  stall,         ///< Nothing passes in either direction until `end_stall`.
  kill_process,  ///< This process is killed.
  run,           ///< `at_fault` is called, and says whether the connection goes on.
};

/// A relay that counts packets, and makes a fault occur at one of them. Connections that are made after the fault are
/// not disturbed.
class FaultProxy {
 public:
  FaultProxy(const std::string& url, bool mysql);

  const std::string& url() const { return url_; }

  /// Counts anew. The clients must be quiet. Waits until all that they sent before, and the end of each connection that
  /// they closed before, has passed.
  void count();

  /// The same, with a fault at that point.
  void arm(FaultPoint, Fault, std::function<bool()> at_fault = {});

  /// Whether the armed fault has occurred, or occurs soon: a packet without a reply may still be on its way.
  bool reached() const;

  /// Whether it has happened by now.
  bool reached_by_now() const { return reached_; }

  /// The packets that have passed since `count`, in their order. Waits as `count` does.
  std::vector<Passed> passed() const;

  /// How many have passed by now.
  std::size_t passed_by_now() const;

  void end_stall() { stalled_ = false; }

  /// The ports by which the server knows the connections that were made through the proxy since the
  /// last `count` or `arm`, and the newest of all.
  int newest_port() const { return newest_port_; }

 private:
  struct Connection;
  struct Way;

  void wait_until_quiet() const;
  bool is_quiet() const;
  void serve(int client, int server);
  void pass_all(Connection&);
  bool pass(Way&);
  std::optional<std::size_t> spared_bytes(Direction, std::size_t size);
  bool happen();

  bool mysql_;
  mutable std::mutex mutex_;
  std::vector<const Connection*> connections_;
  std::vector<Passed> passed_;
  std::optional<FaultPoint> point_;
  Fault fault_ = Fault::cut;
  std::function<bool()> at_fault_;
  std::atomic<bool> reached_ = false;
  std::atomic<bool> stalled_ = false;
  std::atomic<int> newest_port_ = 0;
  std::string url_;
  Relay relay_;  ///< The last member: its threads use the others.
};

}  // namespace txinbox::test
