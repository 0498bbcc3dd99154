// Measures one section on one database and prints its raw figures as JSON. bench/run.sh starts the servers, and pins
// this program and the servers to CPUs.

#include <chrono>
#include <functional>
#include <string>

#include <CLI/CLI.hpp>

#include "program.hpp"
#include "sections.hpp"

namespace {

using namespace txinbox::bench;

/// Adds a subcommand with the options that all subcommands have.
CLI::App* add(CLI::App& app, const std::string& name, const std::string& text, Target& target,
              std::function<Json()>& chosen, std::function<Json()> measure) {
  CLI::App* command = app.add_subcommand(name, text);
  add_target(*command, target, {"sqlite3", "mariadb", "mysql", "postgresql"});
  command->callback([&chosen, measure = std::move(measure)] { chosen = measure; });
  return command;
}

/// Adds an option for a time in milliseconds.
void add_milliseconds(CLI::App& command, const std::string& name, std::chrono::milliseconds& time,
                      const std::string& text = "") {
  command.add_option_function<long>(
      name, [&time](long count) { time = std::chrono::milliseconds(count); }, text);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Measures what the inbox costs");
  app.require_subcommand(1);
  Target target;
  std::function<Json()> chosen;

  TransactionOptions transactions;
  long at_most = transactions.at_most.count();
  long round_trip = 0;
  long at_least = 0;
  auto* command = add(app, "transactions", "One message and batches, against by hand", target, chosen, [&] {
    transactions.at_most = std::chrono::seconds(at_most);
    transactions.round_trip = std::chrono::microseconds(round_trip);
    transactions.at_least = std::chrono::microseconds(at_least);
    return measure_transactions(target, transactions);
  });
  command->add_option("--rounds", transactions.rounds);
  command->add_option("--at-most", at_most, "After so many seconds no further round begins, once there were three");
  add_milliseconds(*command, "--slot-ms", transactions.slot, "About how long a variant runs in a round");
  command->add_flag("!--new-only", transactions.duplicates, "No duplicates");
  command->add_option("--variants", transactions.variants, "Only these")->delimiter(',');
  command->add_option("--round-trip-us", round_trip, "Time that a proxy adds to each round trip");
  command->add_option("--at-least-us", at_least, "A single message that takes less fails the run");

  VariantOptions variant;
  command = add(app, "variant", "Runs one variant and measures nothing", target, chosen,
                [&] { return run_variant(target, variant); });
  command->add_option("--name", variant.variant)->required();
  command->add_option("--messages", variant.messages);

  ThreadOptions threads;
  command =
      add(app, "threads", "Throughput by threads", target, chosen, [&] { return measure_threads(target, threads); });
  command->add_option("--rounds", threads.rounds);
  add_milliseconds(*command, "--slot-ms", threads.slot);
  command->add_option("--threads", threads.threads)->delimiter(',');

  SizeOptions sizes;
  command = add(app, "sizes", "A new key, a duplicate and a purged row by the size of the table", target, chosen, [&] {
    sizes.at_most = std::chrono::seconds(at_most);
    return measure_sizes(target, sizes);
  });
  command->add_option("--rounds", sizes.rounds);
  command->add_option("--at-most", at_most);
  command->add_option("--messages", sizes.messages, "In each round");
  command->add_option("--rows", sizes.rows)->delimiter(',');

  PurgeCostOptions purge;
  command =
      add(app, "purge", "One message while a purge runs", target, chosen, [&] { return measure_purge(target, purge); });
  command->add_option("--rounds", purge.rounds);
  add_milliseconds(*command, "--slot-ms", purge.slot);
  add_milliseconds(*command, "--rest-ms", purge.rest);
  command->add_option("--rows", purge.rows);
  command->add_option("--purge-cpu", purge.purge_cpu, "That the purge's thread is bound to");

  RedeliveryOptions redeliveries;
  command = add(app, "redeliveries", "Duplicates, with and without the memory of recent keys", target, chosen,
                [&] { return measure_redeliveries(target, redeliveries); });
  command->add_option("--rounds", redeliveries.rounds);
  command->add_option("--messages", redeliveries.messages, "In each round");

  OutboxOptions outbox;
  command = add(app, "outbox", "Adding messages to the outbox, and publishing them", target, chosen,
                [&] { return measure_outbox(target, outbox); });
  command->add_option("--rounds", outbox.rounds);
  add_milliseconds(*command, "--slot-ms", outbox.slot);
  command->add_option("--backlog", outbox.backlog, "Messages that the relay finds");
  command->add_option("--deleted", outbox.deleted, "Rows removed under a snapshot; 0: not measured");
  command->add_option("--batch", outbox.batch, "Rows that the relay reads at a time");
  command->add_option("--keys", outbox.keys, "Of the messages in the backlog");
  command->add_option("--failing", outbox.failing, "Keys whose messages always fail");
  command->add_option("--failing-rounds", outbox.failing_rounds);
  command->add_option("--delays", outbox.delays, "Messages of each kind in a round");

  LoopOptions loop;
  command = add(app, "loop", "The loop's own cost, and stuck lanes", target, chosen,
                [&] { return measure_loop(target, loop); });
  command->add_option("--rounds", loop.rounds);
  command->add_option("--messages", loop.messages, "In each round, for the loop's own cost");
  add_milliseconds(*command, "--slot-ms", loop.slot, "Of each number of stuck lanes");

  GrowthOptions growth;
  command = add(app, "growth", "One message by the size of a batch and other sizes", target, chosen,
                [&] { return measure_growth(target, growth); });
  command->add_option("--rounds", growth.rounds);
  add_milliseconds(*command, "--slot-ms", growth.slot, "Of each size");
  command->add_option("--outbox", growth.outbox, "Numbers of messages in the outbox")->delimiter(',');

  MemoryOptions memory;
  command = add(app, "memory", "Growth of the process", target, chosen, [&] { return measure_memory(target, memory); });
  command->add_option("--messages", memory.messages);
  command->add_option("--warm-up", memory.warm_up);

  CommandOptions lines;
  command = add(app, "command", "The command on JSON lines, against C by hand", target, chosen,
                [&] { return measure_command(target, lines); });
  command->add_option("--rounds", lines.rounds);
  command->add_option("--lines", lines.lines);
  command->add_option("--batch", lines.batch);
  command->add_option("--command", lines.command)->required();
  command->add_option("--by-hand", lines.by_hand)->required();

  add(app, "describe", "Versions, settings and the disk", target, chosen, [&] { return describe(target); });

  CLI11_PARSE(app, argc, argv);
  return print_figures("txinbox_bench", chosen);
}
