#include "torture/checker.hpp"

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "torture/lease_checker.hpp"

namespace txinbox::torture {
namespace {

/// The rows of the database for one key.
struct Found {
  std::vector<const LedgerLine*> effects;
  std::vector<const InboxRow*> rows;
};

std::string runs_of(const Found& found) {
  std::string text = std::to_string(found.effects.size());
  for (const LedgerLine* line : found.effects)
    text += (line == found.effects.front() ? ": run " : ", run ") + line->run;
  return text;
}

std::string describe(const Transfer& transfer) {
  return fmt::format("{} from account {} to {}", transfer.amount, transfer.from, transfer.to);
}

class Check {
 public:
  Check(const Plan& plan, const std::vector<KeyLedger>& keys, const Evidence& evidence, Promise promise)
      : plan_(plan),
        keys_(keys),
        evidence_(evidence),
        is_leased_(promise == Promise::at_least_once),
        found_(keys.size()) {
    for (int account = 0; account < account_count; ++account) balances_[account] = initial_balance;
  }

  std::vector<Imbalance> run() && {
    sort_by_key();
    for (std::size_t i = 0; i < keys_.size(); ++i) check_key(i);
    check_balances();
    return std::move(wrong_);
  }

 private:
  void sort_by_key() {
    std::unordered_map<std::string, std::size_t> indexes;
    for (std::size_t i = 0; i < keys_.size(); ++i) indexes.emplace(Plan::business_key(i), i);
    for (const LedgerLine& line : evidence_.ledger) {
      const auto at = indexes.find(line.business_key);
      if (at == indexes.end()) {
        add_imbalance(line.business_key, "an effect of a key that was never sent", "0", "1: run " + line.run);
      } else {
        found_[at->second].effects.push_back(&line);
      }
    }
    for (const InboxRow& row : evidence_.inbox) {
      const auto at = indexes.find(row.business_key);
      if (at == indexes.end()) {
        add_imbalance(row.business_key, "a row of a key that was never sent", "none", row.state);
      } else {
        found_[at->second].rows.push_back(&row);
      }
    }
  }

  void check_key(std::size_t index) {
    const KeyPlan plan = plan_.key(index);
    const KeyLedger& key = keys_[index];
    const Found& found = found_[index];
    const bool must_be_there = key.is_acknowledged || key.outstanding == 0;
    if (key.outstanding != 0) {
      add_imbalance(plan.business_key, "deliveries that were never acknowledged", "0", std::to_string(key.outstanding));
    }
    const std::size_t expected = must_be_there || !found.rows.empty() ? 1 : 0;
    const std::size_t found_effects = found.effects.size();
    if (is_leased_ ? must_be_there && found_effects == 0 : found_effects != expected) {
      add_imbalance(plan.business_key, "effects", is_leased_ ? "1 or more" : std::to_string(expected), runs_of(found));
    }
    if (found.rows.size() != expected) {
      add_imbalance(plan.business_key, "rows in the inbox", std::to_string(expected),
                    std::to_string(found.rows.size()));
    }
    const auto times = static_cast<std::int64_t>(is_leased_ ? found_effects : expected);
    balances_[plan.transfer.from] -= times * plan.transfer.amount;
    balances_[plan.transfer.to] += times * plan.transfer.amount;
    if (is_leased_) {
      for (Imbalance& each : check_leased(leased(index))) wrong_.push_back(std::move(each));
    }
    for (const LedgerLine* line : found.effects) {
      if (!(line->transfer == plan.transfer)) {
        add_imbalance(plan.business_key, "the transfer", describe(plan.transfer), describe(line->transfer));
      }
    }
    for (const InboxRow* row : found.rows) check_row(index, plan, *row);
  }

  LeasedKey leased(std::size_t index) const {
    const Found& found = found_[index];
    LeasedKey key{.business_key = Plan::business_key(index), .effects = found.effects, .resource = {}};
    if (!found.rows.empty()) key.row = found.rows.front();
    const auto at = evidence_.resources.find(key.business_key);
    if (at != evidence_.resources.end()) key.resource = at->second;
    return key;
  }

  void check_row(std::size_t index, const KeyPlan& plan, const InboxRow& row) {
    if (row.state != "consumed") add_imbalance(plan.business_key, "the row's state", "consumed", row.state);
    const std::string message_id = fmt::format("message-{}-", index);
    if (!row.message_id.starts_with(message_id)) {
      add_imbalance(plan.business_key, "the row's message id", message_id + "…", row.message_id);
    }
    // The run in the ledger has stored the result, and no consumer has reported another.
    std::string expected = "none";
    if (plan.stores && is_leased_) expected = completing_run(leased(index));
    if (plan.stores && !is_leased_ && found_[index].effects.size() == 1) expected = found_[index].effects.front()->run;
    const std::string stored = row.stored.value_or("none");
    if (stored != expected && (is_leased_ || found_[index].effects.size() <= 1)) {
      add_imbalance(plan.business_key, "the stored result", expected, stored);
    }
    if (keys_[index].stored && *keys_[index].stored != stored) {
      add_imbalance(plan.business_key, "the stored result that consumers reported", stored, *keys_[index].stored);
    }
  }

  void check_balances() {
    for (const auto& [account, expected] : balances_) {
      const auto at = evidence_.balances.find(account);
      const std::string found = at == evidence_.balances.end() ? "no such account" : std::to_string(at->second);
      if (found != std::to_string(expected)) {
        add_imbalance(fmt::format("account {}", account), "the balance", std::to_string(expected), found);
      }
    }
    for (const auto& [account, balance] : evidence_.balances) {
      if (balances_.count(account) == 0) {
        add_imbalance(fmt::format("account {}", account), "the balance", "no such account", std::to_string(balance));
      }
    }
  }

  void add_imbalance(std::string subject, std::string what, std::string expected, std::string found) {
    wrong_.push_back({std::move(subject), std::move(what), std::move(expected), std::move(found)});
  }

  const Plan& plan_;
  const std::vector<KeyLedger>& keys_;
  const Evidence& evidence_;
  bool is_leased_;
  std::vector<Found> found_;
  std::map<int, std::int64_t> balances_;
  std::vector<Imbalance> wrong_;
};

}  // namespace

std::vector<Imbalance> check(const Plan& plan, const std::vector<KeyLedger>& keys, const Evidence& evidence,
                             Promise promise) {
  return Check(plan, keys, evidence, promise).run();
}

}  // namespace txinbox::torture
