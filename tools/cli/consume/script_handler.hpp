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

/// Runs the script for the messages of a batch, and remembers each message's last run. The script may run several times
/// for a message before its outcome is decided.
class ScriptHandler {
 public:
  enum class Order {
    free,    ///< A message also runs after failures of earlier messages, except after a transient error.
    strict,  ///< A message runs only if all earlier messages ran.
  };

  ScriptHandler(const Script& script, Batch& batch, Order order)
      : script_(script), batch_(batch), order_(order), runs_(batch.messages.size()) {}

  /// Prepares for the messages from `first` to before `end`, which are consumed next in their own call of
  /// `consume_batch`.
  void begin(std::size_t first, std::size_t end);

  /// Runs the script for one delivery. It refers to this object.
  Handler handler();

  /// The same, and a handler that runs the script for all deliveries together. Use it only if `Script::most_together`
  /// is not 0.
  BatchHandlers handlers();

  /// The last run of a message.
  struct Run {
    bool begun = false;
    std::size_t statement = 0;  // the one that threw `error`, from 1
    std::exception_ptr error = {};
  };
  const Run& run_of(std::size_t message) const { return runs_[message]; }

  /// Whether this error says that a message did not run because an earlier one did not. It can run once the results of
  /// the earlier ones are known: after a duplicate it runs, after a parked message it may not.
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
  std::size_t ran_to_ = 0;             // for Order::strict: all messages before this one ran
  std::optional<std::size_t> failed_;  // the message whose last run ended in a transient error
};

}  // namespace txinbox::cli
