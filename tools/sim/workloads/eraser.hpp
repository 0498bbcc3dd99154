#pragma once

// A process that erases messages which were consumed.

#include <cstddef>
#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "sim/workload.hpp"

namespace txinbox::sim {

class Eraser {
 public:
  Eraser(World& world, std::string consumer) : world_(world), consumer_(std::move(consumer)) {}

  /// Does the work of `main`.
  void work(const std::stop_token&);

  /// The keys that a producer sends again now. They are erased at this time, or were erased a short time ago.
  std::vector<std::string> take_due();

  /// Whether `take_due` will return a key.
  bool has_more() const noexcept { return !again_.empty(); }

  /// The handler of a message, which was sent at this time, begins. Tells the story if the message is erased.
  void check_begin(const std::string& key, SimTime sent_at);

 private:
  void erase_some(const std::stop_token&);
  void choose();
  void choose_from(std::string_view condition);
  void check_erased(const std::string& key);

  World& world_;
  const std::string consumer_;
  std::vector<std::string> keys_;  ///< Those of the erasure that is not complete.
  std::set<std::string> chosen_;
  std::set<std::string> erased_;
  std::multimap<SimTime, std::string> again_;  ///< By the time at which a producer sends them.
};

}  // namespace txinbox::sim
