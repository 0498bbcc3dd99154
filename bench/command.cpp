#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <fmt/format.h>
#include <soci/soci.h>

#include "effects.hpp"
#include "measure.hpp"
#include "sections.hpp"

extern char** environ;

namespace txinbox::bench {
namespace {

/// Writes orders as JSON lines. One line in twenty delivers an earlier order again. Returns the number of distinct
/// orders.
int write_lines(const std::string& file, int lines) {
  std::ofstream out(file);
  int orders = 0;
  for (int i = 0; i < lines; ++i) {
    int number = orders;
    if (i % 20 == 19) {
      number -= 1 + (i * 7) % 19;
    } else {
      ++orders;
    }
    out << fmt::format(
        R"({{"id":"evt-{:08}","type":"order.paid","order":{{"no":"order-{:08}","customer":"customer-{}","currency":"EUR"}},)"
        R"("account":{},"amount":{}.{:02},"time":"2026-01-01T{:02}:{:02}:{:02}Z"}})"
        "\n",
        i, number, number % 5000, 1 + (number * 617LL) % account_rows, number % 400, number % 100, number / 3600 % 24,
        number / 60 % 60, number % 60);
  }
  if (!out.flush()) throw std::runtime_error("cannot write " + file);
  return orders;
}

/// Runs a program, and redirects its output to standard error. Returns its elapsed seconds and its CPU seconds.
std::pair<double, double> run(std::vector<std::string> arguments) {
  std::vector<char*> argv;
  for (std::string& each : arguments) argv.push_back(each.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  const auto start = Clock::now();
  pid_t child = 0;
  const int error = ::posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("cannot start " + arguments[0]);
  int status = 0;
  rusage usage{};
  if (::wait4(child, &status, 0, &usage) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw std::runtime_error(arguments[0] + " failed");
  }
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return {microseconds_since(start) / 1e6, seconds(usage.ru_utime) + seconds(usage.ru_stime)};
}

}  // namespace

Json measure_command(const Target& target, const CommandOptions& options) {
  const std::string file = target.folder + "/lines.jsonl";
  const int orders = write_lines(file, options.lines);
  const auto bytes = std::filesystem::file_size(file);
  const std::string batch = std::to_string(options.batch);
  Json wall = {{"command", Json::array()}, {"by_hand", Json::array()}};
  Json cpu = wall;
  Progress progress("runs", 2 * options.rounds);
  const auto begin = Clock::now();
  for (int round = 0; round < options.rounds; ++round) {
    if (round > 0 && Clock::now() - begin > options.at_most) break;
    rotated(2, round, [&](std::size_t variant) {
      const Database database(target);
      const std::string name = variant == 0 ? "command" : "by_hand";
      ::setenv("TXINBOX_DB", database.url().c_str(), 1);  // a command line would show its password
      const auto [seconds, cpu_seconds] =
          variant == 0 ? run({options.command, "consume", "--consumer", "bench", "--key", "/order/no", "--batch", batch,
                              "--sql", "UPDATE bench_account SET n = n + 1 WHERE id = :account", file})
                       : run({options.by_hand, batch, file});
      wall[name].push_back(seconds);
      cpu[name].push_back(cpu_seconds);
      Pool pool = database.pool(1);
      const auto connection = pool.acquire();
      const Effects effects(connection);
      effects.expect_sum(name, orders);
      effects.expect_claims(name, orders);
      progress.step();
    });
  }
  std::filesystem::remove(file);
  return {{"lines", options.lines}, {"orders", orders}, {"bytes", bytes},
          {"batch", options.batch}, {"seconds", wall},  {"cpu_seconds", cpu}};
}

}  // namespace txinbox::bench
