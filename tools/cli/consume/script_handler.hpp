#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <vector>

#include <txinbox/handler.hpp>

#include "cli/consume/batch_reader.hpp"
#include "cli/sql/sql_script.hpp"

namespace soci {
class session;
}

namespace txinbox::cli {

/// Runs the script for the messages of a batch, and remembers how far it got. One message's script may
/// run several times before its fate is decided.
class ScriptHandler {
 public:
  enum class Order {
    free,    ///< A message runs whatever became of those before it, unless one failed with a transient error.
    strict,  ///< No message runs unless all before it did.
  };

  ScriptHandler(const Script& script, Batch& batch, Order order)
      : script_(script), batch_(batch), order_(order), runs_(batch.messages.size()) {}

  /// The messages from `first` to before `end` are about to be consumed, as a batch of their own.
  void begin(std::size_t first, std::size_t end);

  /// What runs the script for one delivery. It refers to this object.
  Handler handler();

  /// The same, with what runs it for all deliveries together. Only where `Script::most_together` is not 0.
  BatchHandlerPair handlers();

  /// What is known of a message's last run.
  struct Run {
    bool begun = false;
    std::size_t statement = 0;  // that threw `error`, from 1
    std::exception_ptr error = {};
  };
  const Run& run_of(std::size_t message) const { return runs_[message]; }

  /// Whether a message did not run because of the order. It can be tried again once it is known what
  /// became of those before it: a duplicate is no reason to stop, a parked one may be.
  static bool is_held_back(const std::exception_ptr& error);

 private:
  void run(soci::session& session, Delivery& delivery);
  void run_together(soci::session& session, std::span<Delivery> deliveries);
  bool is_copy(std::size_t message) const;
  bool would_overtake(std::size_t message);

  const Script& script_;
  Batch& batch_;
  Order order_;
  std::vector<Run> runs_;
  std::size_t first_ = 0;
  std::size_t ran_to_ = 0;             // for Order::strict: those before this one ran
  std::optional<std::size_t> failed_;  // with a transient error, and did not run again since
};

}  // namespace txinbox::cli
