#include "cli/consume/script_handler.hpp"

#include <txinbox/error.hpp>
#include <txinbox/result.hpp>

#include "cli/sql/prepared_script.hpp"

namespace txinbox::cli {
namespace {

// The handler throws it for a message that must wait for earlier messages. `stopped` is not a failure, so it is not
// counted.
class HeldBack : public Error {
 public:
  HeldBack() : Error(ErrorCode::stopped, "an earlier message has no result yet") {}
};

}  // namespace

bool ScriptHandler::is_held_back(const std::exception_ptr& error) {
  if (!error) return false;
  try {
    std::rethrow_exception(error);
  } catch (const HeldBack&) {
    return true;
  } catch (...) {
    return false;
  }
}

void ScriptHandler::begin(std::size_t first, std::size_t end) {
  first_ = first;
  ran_to_ = first;
  failed_.reset();
  for (std::size_t i = first; i < end; ++i) runs_[i] = {};
}

// Whether the message has the key and the content of an earlier one. Then it need not run. With other content, it may
// be a conflict.
bool ScriptHandler::is_copy(std::size_t message) const {
  const Message& copy = batch_.messages[message];
  for (std::size_t i = first_; i < message; ++i) {
    const Message& original = batch_.messages[i];
    if (original.business_key == copy.business_key && original.content == copy.content) return true;
  }
  return false;
}

bool ScriptHandler::would_overtake(std::size_t message) {
  if (failed_ && *failed_ < message) return true;
  if (order_ == Order::free) return false;
  while (ran_to_ < message && (runs_[ran_to_].begun || is_copy(ran_to_))) ++ran_to_;
  return ran_to_ < message;
}

Handler ScriptHandler::handler() {
  return [this](soci::session& session, Delivery& delivery) { run(session, delivery); };
}

BatchHandlers ScriptHandler::handlers() {
  return {[this](soci::session& session, std::span<Delivery> deliveries) { run_together(session, deliveries); },
          handler()};
}

void ScriptHandler::run(soci::session& session, Delivery& delivery) {
  const std::size_t message = first_ + delivery.index();
  Run& run = runs_[message];
  run = {};
  if (failed_ == message) failed_.reset();
  if (would_overtake(message)) throw HeldBack();
  run.begun = true;
  try {
    auto& prepared = delivery.per_connection<PreparedScript>(session);
    while (run.statement < script_.statements.size()) {
      prepared.run(script_, run.statement++, batch_.values[message], delivery.keeps_statements());
    }
  } catch (...) {
    run.error = std::current_exception();
    if (is_transient(run.error)) failed_ = message;
    throw;
  }
}

void ScriptHandler::run_together(soci::session& session, std::span<Delivery> deliveries) {
  if (deliveries.front().attempt() > 1) {  // after a transient error: one by one, to find its message
    for (Delivery& each : deliveries) run(session, each);
    return;
  }
  std::vector<const Values*> values;
  values.reserve(deliveries.size());
  const std::size_t ran_to = ran_to_;
  try {
    for (const Delivery& each : deliveries) {
      const std::size_t message = first_ + each.index();
      if (would_overtake(message)) throw HeldBack();
      runs_[message] = {.begun = true};
      values.push_back(&batch_.values[message]);
    }
    Delivery& first = deliveries.front();
    first.per_connection<PreparedScript>(session).run_together(script_, values, first.keeps_statements());
  } catch (...) {  // the transaction is rolled back, and it is unknown which statement failed
    for (const Delivery& each : deliveries) runs_[first_ + each.index()] = {};
    ran_to_ = ran_to;
    throw;
  }
}

}  // namespace txinbox::cli
