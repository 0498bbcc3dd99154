#include "torture/outbox_checker.hpp"

#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "torture/outbox_handler.hpp"

namespace txinbox::torture {
namespace {

using Name = std::pair<std::string, unsigned>;  // a run, and the number of the message in it

Name name_of(const Published& message) { return {message.payload.run, message.payload.number}; }

std::string describe(const Published& message) {
  return fmt::format("change {}: run {}, message {}", message.payload.change, message.payload.run,
                     message.payload.number);
}

class Check {
 public:
  explicit Check(const Plan& plan) : plan_(plan) {}

  std::vector<Imbalance> run(std::uint64_t keys, const std::vector<LedgerLine>& ledger,
                             const std::vector<Published>& published, std::uint64_t left) && {
    read_plan(keys);
    for (const LedgerLine& line : ledger) lines_.emplace(line.run, &line);
    for (const Published& message : published) check_message(message);
    for (const LedgerLine& line : ledger) check_line(line);
    if (left != 0) add_imbalance("the outbox", "messages that were never published", "0", std::to_string(left));
    return std::move(wrong_);
  }

 private:
  void read_plan(std::uint64_t keys) {
    for (std::uint64_t i = 0; i < keys; ++i) {
      const KeyPlan key = plan_.key(i);
      planned_.emplace(key.business_key, key.messages);
    }
  }

  unsigned planned_for(const LedgerLine& line) const {
    const auto at = planned_.find(line.business_key);
    return at == planned_.end() ? 0 : at->second;
  }

  void check_message(const Published& message) {
    const auto [by_id, is_new_id] = by_id_.emplace(message.id, name_of(message));
    if (by_id->second != name_of(message)) {
      add_imbalance(message.id, "the message of an id", fmt::format("run {}", by_id->second.first), describe(message));
    }
    const auto [id, is_new] = ids_.emplace(name_of(message), message.id);
    if (!is_new) {
      if (id->second != message.id) add_imbalance(describe(message), "the id of a message", id->second, message.id);
      return;
    }
    const auto line = lines_.find(message.payload.run);
    if (line == lines_.end()) {
      add_imbalance(message.key, "a message of a run that took no effect", "none", describe(message));
      return;
    }
    if (message.payload.number == 0 || message.payload.number > planned_for(*line->second)) {
      add_imbalance(message.key, "a message that no handler added", "none", describe(message));
    }
    if (const std::string key = plan_.outbox_key(line->second->transfer); message.key != key) {
      add_imbalance(describe(message), "the key of a message", key, message.key);
    }
    check_order(message);
  }

  void check_order(const Published& message) {
    const auto [last, is_first] = last_.emplace(message.key, &message);
    if (is_first) return;
    const OutboxPayload& before = last->second->payload;
    if (std::pair(message.payload.change, message.payload.number) < std::pair(before.change, before.number)) {
      add_imbalance(message.key, "an older message after a newer one", "after " + describe(*last->second),
                    describe(message));
      return;
    }
    last->second = &message;
  }

  void check_line(const LedgerLine& line) {
    for (unsigned number = 1; number <= planned_for(line); ++number) {
      if (ids_.count({line.run, number}) != 0) continue;
      add_imbalance(line.business_key, "a message was lost", fmt::format("run {}, message {}", line.run, number),
                    "none");
    }
  }

  void add_imbalance(std::string subject, std::string what, std::string expected, std::string found) {
    wrong_.push_back({std::move(subject), std::move(what), std::move(expected), std::move(found)});
  }

  std::unordered_map<std::string, unsigned> planned_;         // messages by business key
  std::unordered_map<std::string, const LedgerLine*> lines_;  // by run
  std::unordered_map<std::string, Name> by_id_;
  const Plan& plan_;
  std::map<Name, std::string> ids_;
  std::unordered_map<std::string, const Published*> last_;  // the newest message of each key
  std::vector<Imbalance> wrong_;
};

}  // namespace

std::vector<Imbalance> check_outbox(const Plan& plan, std::uint64_t keys, const std::vector<LedgerLine>& ledger,
                                    const std::vector<Published>& published, std::uint64_t left) {
  return Check(plan).run(keys, ledger, published, left);
}

OutboxFigures outbox_figures(const std::vector<Published>& published) {
  std::map<std::string, std::uint64_t> times;
  for (const Published& message : published) ++times[message.id];
  return {.messages = times.size(), .published_again = published.size() - times.size()};
}

}  // namespace txinbox::torture
