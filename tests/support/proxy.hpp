#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include "support/relay.hpp"

namespace txinbox::test {

/// A relay that counts round trips. It can lose a reply of the server: the request arrives, and the reply does not.
class Proxy {
 public:
  /// In front of the server that `url` names.
  explicit Proxy(const std::string& url);

  /// The same URL through the proxy.
  const std::string& url() const { return relay_.url(); }

  /// Drops a reply and its connection: the next reply, or the one after `spared` others.
  void lose_reply(int spared = 0) { replies_until_loss_ = spared + 1; }

  /// Nothing passes in either direction until this is ended. Connections stay open. New ones are accepted, and are
  /// silent too.
  void fall_silent(bool silent = true) { silent_ = silent; }

  /// From now on, each piece is held back for so long before it is passed on.
  void delay(std::chrono::milliseconds time) { delay_ = time; }

  /// From now on, connections are made to this server instead, as a balancer does when one has failed.
  void forward_to(const std::string& url) { relay_.forward_to(url); }

  /// How many replies were lost so far.
  int lost() const { return lost_; }

  /// How often a client has sent a request. A request or a reply in several pieces counts once.
  int round_trips() const { return round_trips_; }

 private:
  void serve(int client, int server);

  std::atomic<int> replies_until_loss_ = 0;
  std::atomic<int> lost_ = 0;
  std::atomic<bool> silent_ = false;
  std::atomic<std::chrono::milliseconds> delay_ = std::chrono::milliseconds(0);
  std::atomic<int> round_trips_ = 0;
  Relay relay_;  ///< The last member: its threads use the others.
};

}  // namespace txinbox::test
