#include "torture/report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "console/json_output.hpp"
#include "console/progress.hpp"
#include "console/table.hpp"

namespace txinbox::torture {
namespace {

using cli::grouped;

// The most imbalances that are printed. All evidence is in the database.
constexpr std::size_t most_printed = 20;
constexpr std::size_t most_in_json = 1'000;

// The key in quotes, because it can end with a blank. A long key is shown as its two ends, because such keys differ in
// the last byte.
std::string short_subject(const std::string& subject) {
  constexpr std::size_t longest = 40;
  constexpr std::size_t end = 10;
  if (subject.size() <= longest) return "'" + subject + "'";
  return "'" + subject.substr(0, longest - end) + "…" + subject.substr(subject.size() - end) + "'";
}

std::string imbalances(const std::vector<Imbalance>& wrong) {
  std::vector<std::vector<std::string>> rows{{"KEY OR ACCOUNT", "WHAT", "EXPECTED", "FOUND"}};
  for (std::size_t i = 0; i < std::min(wrong.size(), most_printed); ++i) {
    rows.push_back({short_subject(wrong[i].subject), wrong[i].what, wrong[i].expected, wrong[i].found});
  }
  std::string text = cli::format_table(rows);
  if (wrong.size() > most_printed) text += fmt::format("\nand {} more", grouped(wrong.size() - most_printed));
  return text;
}

// The number of rows from "workers killed" to the end. The rows for leases and for the outbox are inserted before them.
constexpr std::ptrdiff_t rows_from_the_end = 5;

const char* verdict(const Report& report) {
  if (report.has_outbox) return "each key took effect exactly once, and each message was published, in order.";
  if (report.has_redrive) return "each key took effect exactly once, and no dead letter is left.";
  return report.is_leased ? "each key took effect, in the order of its fences, and was completed once."
                          : "each key took effect exactly once.";
}

}  // namespace

std::string as_text(const Report& report) {
  const auto& tally = report.tally;
  const auto& figures = report.figures;
  std::vector<std::vector<std::string>> rows{
      {"database", fmt::format("{} {}", report.database, report.server_version)},
      {"seed", std::to_string(report.seed)},
      {"seconds", fmt::format("{:.1f}", figures.elapsed.count())},
      {"keys", grouped(report.keys)},
      {"deliveries", grouped(tally.deliveries)},
      {"effects", grouped(report.effects)},
      {"acknowledged", grouped(tally.acknowledged)},
      {"duplicates", grouped(tally.duplicates)},
      {"conflicts", grouped(tally.conflicts)},
      {"lost commit replies", grouped(report.lost_commit_replies)},
      {"handler failures", grouped(tally.handler_failures)},
      {"unexpected failures", grouped(tally.unexpected_failures)},
      {"transactions lost", grouped(figures.met.transactions_lost)},
      {"deadlocks", grouped(figures.met.deadlocks)},
      {"lock time-outs", grouped(figures.met.lock_timeouts)},
      {"connections lost", grouped(figures.met.connections_lost)},
      {"retries", grouped(figures.met.retries)},
      {"workers killed", grouped(figures.workers_killed)},
      {"deliveries lost in kills", grouped(tally.lost_with_worker)},
      {"commands run", grouped(figures.commands_run)},
      {"commands failed", grouped(figures.commands_failed)},
      {"longest outage", fmt::format("{:.3f} s", figures.longest_outage.count())}};
  if (report.is_leased) {
    rows.insert(rows.end() - rows_from_the_end, {{"in progress", grouped(tally.in_progress)},
                                                 {"leases taken over", grouped(figures.met.leases_taken_over)},
                                                 {"leases lost", grouped(figures.met.leases_lost)},
                                                 {"effects refused", grouped(figures.met.effects_refused)}});
  }
  if (report.has_outbox) {
    rows.insert(rows.end() - rows_from_the_end, {{"messages", grouped(report.outbox.messages)},
                                                 {"published again", grouped(report.outbox.published_again)},
                                                 {"relays killed", grouped(figures.relays_killed)}});
  }
  if (report.has_redrive) {
    const DeadLetters::Tally& letters = report.letters;
    rows.insert(rows.end() - rows_from_the_end, {{"dead letters", grouped(letters.added)},
                                                 {"redriven", grouped(letters.published)},
                                                 {"redriven again", grouped(letters.published_again)},
                                                 {"redrives refused", grouped(letters.refused)},
                                                 {"parked payloads", grouped(letters.kept_payloads)},
                                                 {"redriven payloads", grouped(letters.from_outbox)},
                                                 {"repairs", grouped(figures.repairs)},
                                                 {"operators killed", grouped(figures.operators_killed)},
                                                 {"kills before acknowledgement", grouped(letters.kills_between)}});
  }
  std::string text = cli::format_table(rows, {false, true});
  if (report.balances()) return text + "\n\nEverything balances: " + verdict(report);
  return text + fmt::format("\n\n{}\n\nIt does not balance: {} imbalances.", imbalances(report.wrong),
                            grouped(report.wrong.size()));
}

std::string as_json(const Report& report) {
  const auto& tally = report.tally;
  const auto& figures = report.figures;
  cli::Json json{{"balances", report.balances()},
                 {"database", report.database},
                 {"server_version", report.server_version},
                 {"seed", report.seed},
                 {"seconds", figures.elapsed.count()},
                 {"keys", report.keys},
                 {"deliveries", tally.deliveries},
                 {"effects", report.effects},
                 {"acknowledged", tally.acknowledged},
                 {"duplicates", tally.duplicates},
                 {"conflicts", tally.conflicts},
                 {"lost_commit_replies", report.lost_commit_replies},
                 {"handler_failures", tally.handler_failures},
                 {"unexpected_failures", tally.unexpected_failures},
                 {"transactions_lost", figures.met.transactions_lost},
                 {"deadlocks", figures.met.deadlocks},
                 {"lock_timeouts", figures.met.lock_timeouts},
                 {"connections_lost", figures.met.connections_lost},
                 {"retries", figures.met.retries},
                 {"in_progress", tally.in_progress},
                 {"leases_taken_over", figures.met.leases_taken_over},
                 {"leases_lost", figures.met.leases_lost},
                 {"effects_refused", figures.met.effects_refused},
                 {"messages", report.outbox.messages},
                 {"published_again", report.outbox.published_again},
                 {"relays_killed", figures.relays_killed},
                 {"dead_letters", report.letters.added},
                 {"redriven", report.letters.published},
                 {"redriven_again", report.letters.published_again},
                 {"redrives_refused", report.letters.refused},
                 {"parked_payloads", report.letters.kept_payloads},
                 {"redriven_payloads", report.letters.from_outbox},
                 {"repairs", figures.repairs},
                 {"operators_killed", figures.operators_killed},
                 {"kills_before_acknowledgement", report.letters.kills_between},
                 {"workers_killed", figures.workers_killed},
                 {"deliveries_lost_with_workers", tally.lost_with_worker},
                 {"commands_run", figures.commands_run},
                 {"commands_failed", figures.commands_failed},
                 {"longest_outage_seconds", figures.longest_outage.count()},
                 {"imbalance_count", report.wrong.size()}};
  auto list = cli::Json::array();
  for (std::size_t i = 0; i < std::min(report.wrong.size(), most_in_json); ++i) {
    const Imbalance& wrong = report.wrong[i];
    list.append(
        {{"subject", wrong.subject}, {"what", wrong.what}, {"expected", wrong.expected}, {"found", wrong.found}});
  }
  json.set("imbalances", std::move(list));
  return json.text();
}

}  // namespace txinbox::torture
