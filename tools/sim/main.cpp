// txinbox-sim: the library's real code in simulated nights. docs/internals/simulation.md

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sqlite3.h>
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
  bool shrinks = true;
  std::vector<std::string> without = {};
  std::map<std::string_view, std::size_t> sizes = {};  ///< Those that the user has chosen.
};

Plan plan_of(std::uint64_t seed, const Options& options) {
  Plan plan = Plan::of(seed);
  for (const std::string& each : options.without) {
    if (!plan.remove_fault(each)) {
      throw CLI::ValidationError(
          "--without", fmt::format("there is no fault {}; there are {}", each, fmt::join(fault_names(), ", ")));
    }
  }
  for (const PlanSize& each : plan_sizes()) {
    if (const auto chosen = options.sizes.find(each.name); chosen != options.sizes.end()) {
      plan.*each.member = chosen->second;
    }
  }
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
  for (const PlanSize& each : plan_sizes()) {
    if (plan.*each.member != whole.*each.member) command += fmt::format(" --{} {}", each.name, plan.*each.member);
  }
  return command;
}

void show_failure(Runner& runner, const Plan& failed, const Report& report, bool shrinks) {
  fmt::print("\nseed {} failed: {}\n  {}\n", failed.seed, report.problem, failed.text());
  if (shrinks) fmt::print("  looking for a smaller world that fails ...\n");
  std::fflush(stdout);
  const Plan plan = shrinks ? runner.shrink(failed, report.problem) : failed;
  const Report again = runner.run(plan);
  fmt::print("  {}\n{}  {}\nagain: {}\n", plan.text(), again.story, again.problem, command_of(plan));
}

int run(const Options& options) {
  const auto start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  // Only one thread runs at a time, and each has connections of its own.
  sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
  sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
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
        "{} worlds, {} deliveries, {} services killed and {} ended, {} restarts of a database, {:.1f} h of simulated "
        "time in {:.0f} s",
        worlds, sum.deliveries, sum.kills, sum.ends, sum.restarts, simulated / 3600, seconds());
  };
  for (int i = 0; i < options.jobs && !is_over(); ++i) runner.start(plan_of(next++, options), i);
  while (runner.running() > 0) {
    const Runner::Ended ended = runner.wait();
    if (!ended.report.problem.empty()) {
      show_failure(runner, ended.plan, ended.report, options.shrinks);
      return 1;
    }
    ++worlds;
    sum.deliveries += ended.report.counts.deliveries;
    sum.kills += ended.report.counts.kills;
    sum.ends += ended.report.counts.ends;
    sum.restarts += ended.report.counts.restarts;
    sum.fingerprint += ended.report.counts.fingerprint;
    simulated += ended.report.simulated_seconds;
    if (shows_progress) fmt::print(stderr, "\r{}", summary());
    if (!is_over()) runner.start(plan_of(next++, options), ended.processor);
  }
  if (shows_progress) fmt::print(stderr, "\n");
  fmt::print("seeds {} to {}: {}\n", options.first, next - 1, summary());
  fmt::print("fingerprint of these worlds: {:016x}\n", sum.fingerprint);
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
  app.add_flag("!--no-shrink", options.shrinks, "show the world that fails as it is, and look for no smaller one");
  app.add_option("--without", options.without,
                 fmt::format("kinds of faults that do not happen: {}", fmt::join(fault_names(), ", ")))
      ->delimiter(',');
  for (const PlanSize& each : plan_sizes()) {
    const auto choose = [&options, name = each.name](std::size_t value) { options.sizes[name] = value; };
    app.add_option_function<std::size_t>(fmt::format("--{}", each.name), choose,
                                         fmt::format("{}, instead of what the seed says", each.text))
        ->check(CLI::Range(each.least(), std::size_t{1'000'000}));
  }
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
