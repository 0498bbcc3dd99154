#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include "support/relay.hpp"

namespace txinbox::test {

/// A proxy that counts round trips. It can lose a reply of the server: the request arrives, and the reply does not.
class Proxy {
 public:
  /// Makes a proxy in front of the server that `url` names.
  explicit Proxy(const std::string& url);

  /// The same URL through the proxy.
  const std::string& url() const { return relay_.url(); }

  /// Drops a reply and closes its connection: the next reply, or the one after `spared` others.
  void lose_reply(int spared = 0) { replies_until_loss_ = spared + 1; }

  /// After this, no data passes in either direction. Connections stay open. New connections are accepted, and get no
  /// data, either.
  void fall_silent(bool silent = true) { silent_ = silent; }

  /// After this, each piece of data is delayed by this time.
  void delay(std::chrono::milliseconds time) { delay_ = time; }

  /// After this, connections go to this server instead, as with a load balancer after a failure.
  void forward_to(const std::string& url) { relay_.forward_to(url); }

  /// How many replies were lost so far.
  int lost() const { return lost_; }

  /// How many requests clients have sent. A request or a reply in several pieces counts once.
  int round_trips() const { return round_trips_; }

 private:
  void serve(int client, int server);

  std::atomic<int> replies_until_loss_ = 0;
  std::atomic<int> lost_ = 0;
  std::atomic<bool> silent_ = false;
  std::atomic<std::chrono::milliseconds> delay_ = std::chrono::milliseconds(0);
  std::atomic<int> round_trips_ = 0;
  Relay relay_;  ///< The last member, because its threads use the other members.
};

}  // namespace txinbox::test
