#include "torture/options.hpp"

#include <cstdint>
#include <random>
#include <string>

#include <CLI/CLI.hpp>

#include "console/duration.hpp"
#include "torture/subject.hpp"

namespace txinbox::torture {
namespace {

constexpr std::int64_t most_keys = 1'000'000'000;
constexpr std::chrono::hours longest{720};

void add_time(CLI::App& app, const std::string& name, std::chrono::milliseconds& time, bool may_be_zero,
              const std::string& description) {
  // This does not use CLI11's numbers with units: CLI11 reads 010s as eight seconds, and s as one second.
  const auto take = [name, may_be_zero, &time](const std::string& text) {
    const auto parsed = cli::parse_duration(text);
    if (!parsed) throw CLI::ValidationError(name, "a number and its unit, such as 500ms, 30s, 10m or 2h");
    if (*parsed > longest || (parsed->count() == 0 && !may_be_zero)) {
      throw CLI::ValidationError(name, may_be_zero ? "at least 0s, at most 720h" : "at least 1ms, at most 720h");
    }
    time = *parsed;
  };
  app.add_option_function<std::string>(name, take, description)->type_name("TIME");
}

template <class Number>
void add_number(CLI::App& app, const std::string& name, Number& number, std::int64_t least, std::int64_t most,
                const std::string& description) {
  app.add_option(name, number, description)->check(CLI::Range(least, most).description(""))->type_name("N");
}

}  // namespace

void add_options(CLI::App& app, Arguments& arguments) {
  StormOptions& storm = arguments.torture.storm;
  arguments.torture.database.add_to(cli::Command(app));
  add_time(app, "--duration", storm.duration, false, "How long keys are sent, such as 30s, 10m or 2h; default 60s");
  add_number(app, "--keys", storm.keys, 1, most_keys, "Send at most this many keys, even if the duration is not over");
  add_number(app, "--rate", storm.rate, 1, most_keys,
             "Send this many keys per second; default: as fast as they are acknowledged");
  add_number(app, "--processes", storm.processes, 1, 256, "Worker processes; default 4");
  add_number(app, "--relays", storm.relays, 1, 64, "With --kind outbox: relay processes; default 3");
  add_number(app, "--threads", storm.threads, 1, 64, "Consuming threads of each process; default 2");
  app.add_option("--seed", storm.seed, "The seed of the schedule; default: a random one")->type_name("N");
  app.add_option("--shards", storm.shards,
                 "Each transfer stays in one of so many shards of Vitess: 2, 4 or 8; default 1 (see the guide)")
      ->check(CLI::IsMember({1, 2, 4, 8}).description(""))
      ->type_name("N");
  add_time(app, "--kill-every", storm.kill_every, true,
           "How often a worker is killed, on average; default 500ms; 0s: never");
  app.add_option("--command", storm.command, "A command that kills or restarts the server, for the shell")
      ->type_name("TEXT");
  add_time(app, "--command-every", storm.command_every, false,
           "From the end of the command to its next run; default 10s");
  add_number(app, "--command-at-least", storm.command_at_least, 1, 1'000'000,
             "Continue after the duration until the command has run this often");
  add_time(app, "--grace", storm.grace, false,
           "Give up if nothing was acknowledged for this time, for example while the database is down; default 60s");
  auto* kind = app.add_option("--kind", storm.subject, "What is tested: tx (the default), lease, outbox or redrive")
                   ->check(CLI::IsMember({"tx", "lease", "outbox", "redrive"}).description(""))
                   ->type_name("KIND");
  app.add_option(
         "--break", storm.subject,
         "Show that the checker finds a defect: consume without a claim (dedup), acknowledge before the commit "
         "(acknowledge), ignore the fence of a lease (fence), remove messages from the outbox before they are "
         "published (delete), publish them in the wrong order (order), or acknowledge dead letters before they are "
         "published again (early)")
      ->check(CLI::IsMember({"dedup", "acknowledge", "fence", "delete", "order", "early"}).description(""))
      ->type_name("WHAT")
      ->excludes(kind);
  app.add_flag("--remove-leftovers", arguments.removes_leftovers,
               "Remove what an earlier storm left in the database, and do nothing else");
  app.add_flag("--json", arguments.torture.json, "Print JSON");

  // The arguments with which the parent starts a worker.
  app.add_option("--worker", arguments.worker.number)->group("");
  app.add_option("--worker-subject", arguments.worker.subject)->group("");
  app.add_option("--worker-name", arguments.worker.name)->group("");
  app.add_option("--worker-sink", arguments.worker.sink)->group("");
  app.add_option("--worker-operator", arguments.worker.is_operator)->group("");
}

void check_options(const CLI::App& app, Arguments& arguments) {
  StormOptions& storm = arguments.torture.storm;
  if (storm.command.empty() && (app.count("--command-every") != 0 || app.count("--command-at-least") != 0)) {
    throw CLI::RequiresError("--command-every and --command-at-least", "--command");
  }
  if (app.count("--relays") != 0 && !has_outbox(storm.subject)) {
    throw CLI::RequiresError("--relays", "--kind outbox");
  }
  if (app.count("--seed") == 0) {
    std::random_device random;
    storm.seed = random();
  }
  arguments.worker.seed = storm.seed;
  arguments.worker.shards = storm.shards;
  arguments.worker.threads = storm.threads;
}

}  // namespace txinbox::torture
