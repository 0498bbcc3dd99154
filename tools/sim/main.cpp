// txinbox-sim: the library's real code in simulated nights. docs/internals/simulation.md

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "sim/runner.hpp"

namespace {

using namespace txinbox::sim;
using Clock = std::chrono::steady_clock;

struct Options {
  std::uint64_t first = 1;
  std::uint64_t count = 100;
  double minutes = 0;
  int jobs = 1;
  std::vector<std::string> without = {};
  std::size_t messages = 0, processes = 0, workers = 0, batch = 0, lanes = 0;
};

Plan plan_of(std::uint64_t seed, const Options& options) {
  Plan plan = Plan::of(seed);
  for (const std::string& each : options.without) {
    if (!plan.remove_fault(each)) {
      throw CLI::ValidationError(
          "--without", fmt::format("there is no fault {}; there are {}", each, fmt::join(fault_names(), ", ")));
    }
  }
  if (options.messages > 0) plan.messages = options.messages;
  if (options.processes > 0) plan.processes = options.processes;
  if (options.workers > 0) plan.workers = options.workers;
  if (options.batch > 0) plan.batch = options.batch;
  if (options.lanes > 0) plan.lanes = options.lanes;
  return plan;
}

/// The command that runs the plan again.
std::string command_of(const Plan& plan) {
  const Plan whole = Plan::of(plan.seed);
  std::string command = fmt::format("txinbox-sim --seed {}", plan.seed);
  std::vector<std::string_view> without;
  for (const std::string_view name : fault_names()) {
    Plan lacks = plan;
    lacks.remove_fault(name);
    Plan whole_lacks = whole;
    whole_lacks.remove_fault(name);
    if (lacks == plan && whole_lacks != whole) without.push_back(name);
  }
  if (!without.empty()) command += fmt::format(" --without {}", fmt::join(without, ","));
  const auto add = [&](std::string_view option, std::size_t value, std::size_t usual) {
    if (value != usual) command += fmt::format(" --{} {}", option, value);
  };
  add("messages", plan.messages, whole.messages);
  add("services", plan.processes, whole.processes);
  add("workers", plan.workers, whole.workers);
  add("batch", plan.batch, whole.batch);
  add("lanes", plan.lanes, whole.lanes);
  return command;
}

void show_failure(Runner& runner, const Plan& failed, const Report& report) {
  fmt::print("\nseed {} failed: {}\n  {}\n  looking for a smaller world that fails ...\n", failed.seed, report.problem,
             failed.text());
  std::fflush(stdout);
  const Plan plan = runner.shrink(failed, report.problem);
  const Report again = runner.run(plan);
  fmt::print("  {}\n{}  {}\nagain: {}\n", plan.text(), again.story, again.problem, command_of(plan));
}

int run(const Options& options) {
  const auto start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  const Migrated migrated = make_migrated();
  Runner runner(migrated);
  std::uint64_t next = options.first;
  const auto is_over = [&] {
    return options.minutes > 0 ? seconds() > options.minutes * 60 : next >= options.first + options.count;
  };
  const bool shows_progress = ::isatty(STDERR_FILENO) != 0;
  std::uint64_t worlds = 0;
  Counts sum;
  double simulated = 0;
  const auto summary = [&] {
    return fmt::format(
        "{} worlds, {} messages, {} deliveries, {} services killed, {} restarts of a database, {:.1f} h "
        "of simulated time in {:.0f} s",
        worlds, sum.messages, sum.deliveries, sum.kills, sum.restarts, simulated / 3600, seconds());
  };
  for (int i = 0; i < options.jobs && !is_over(); ++i) runner.start(plan_of(next++, options), i);
  while (runner.running() > 0) {
    const Runner::Ended ended = runner.wait();
    if (!ended.report.problem.empty()) {
      show_failure(runner, ended.plan, ended.report);
      return 1;
    }
    ++worlds;
    sum.messages += ended.report.counts.messages;
    sum.deliveries += ended.report.counts.deliveries;
    sum.kills += ended.report.counts.kills;
    sum.restarts += ended.report.counts.restarts;
    simulated += ended.report.simulated_seconds;
    if (shows_progress) fmt::print(stderr, "\r{}", summary());
    if (!is_over()) runner.start(plan_of(next++, options), ended.processor);
  }
  if (shows_progress) fmt::print(stderr, "\n");
  fmt::print("seeds {} to {}: {}\n", options.first, next - 1, summary());
  fmt::print("count: {} simulated worlds\ncount: {} simulated deliveries\n", worlds, sum.deliveries);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  bool is_new = false;
  std::optional<std::uint64_t> seed;
  CLI::App app(
      "Runs services in simulated worlds in which much goes wrong, and checks that each message takes effect "
      "exactly once. The same seed always gives the same world.");
  app.add_option("--seed", seed, "run this world only");
  app.add_option("--first", options.first, "the first seed (default: 1)");
  app.add_option("--count", options.count, "how many seeds (default: 100)");
  app.add_flag("--new", is_new, "begin with a random seed");
  app.add_option("--minutes", options.minutes, "run for this time, instead of --count seeds");
  app.add_option("--jobs", options.jobs, "how many worlds run at a time, each on a processor of its own (default: 1)")
      ->check(CLI::Range(1U, std::thread::hardware_concurrency()));
  app.add_option("--without", options.without,
                 fmt::format("kinds of faults that do not happen: {}", fmt::join(fault_names(), ", ")))
      ->delimiter(',');
  app.add_option("--messages", options.messages, "how many messages a world has, instead of what the seed says");
  app.add_option("--services", options.processes, "the same for services");
  app.add_option("--workers", options.workers, "the same for the workers of a service");
  app.add_option("--batch", options.batch, "the same for the most messages of a transaction");
  app.add_option("--lanes", options.lanes, "the same for the lanes of the broker");
  try {
    app.parse(argc, argv);
    if (is_new) options.first = std::random_device()() + 1'000'000ULL;
    if (seed) {
      options.first = *seed;
      options.count = 1;
    }
    return run(options);
  } catch (const CLI::Error& error) {
    return app.exit(error);
  } catch (const std::exception& error) {
    fmt::print(stderr, "txinbox-sim: {}\n", error.what());
    return 2;
  }
}
