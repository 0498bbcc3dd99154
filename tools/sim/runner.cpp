#include "sim/runner.hpp"

#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <limits>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "sim/threads.hpp"

namespace txinbox::sim {

namespace {

/// How much time of the processor a world may take, in seconds. A world in which no thread can go on ends at once.
constexpr rlim_t longest_world = 120;

/// How long a world may take in real time, in seconds. A run at a low priority needs much more time than its worlds.
constexpr unsigned longest_wait = 1800;

void write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written <= 0) ::_exit(2);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// Runs the world in this process, and writes a report. It never returns.
[[noreturn]] void run_child(const Plan& plan, const Migrated& migrated, int processor, bool records_story, int output) {
  cpu_set_t processors;
  CPU_ZERO(&processors);
  CPU_SET(static_cast<std::size_t>(processor), &processors);
  ::sched_setaffinity(0, sizeof processors,
                      &processors);  // only one thread runs at a time: it is faster on one of them
  const rlimit time_of_processor{.rlim_cur = longest_world, .rlim_max = longest_world + 1};
  ::setrlimit(RLIMIT_CPU, &time_of_processor);
  ::alarm(longest_wait);
  // One heap that gives nothing back: only one thread runs at a time, and the world ends soon.
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  ::mallopt(M_MMAP_MAX, 0);
  const auto report = [&](const Counts& counts, double seconds, std::string_view problem, std::string_view story) {
    write_all(output, fmt::format("{} {} {} {} {} {} {}\n{}\n{}", counts.deliveries, counts.kills, counts.ends,
                                  counts.restarts, counts.fingerprint, seconds, problem.size(), problem, story));
    ::_exit(0);
  };
  Threads::run(
      {.seed = plan.seed,
       .switch_rate = plan.switch_rate,
       .on_standstill = [&](std::string_view what, const std::string& threads) { report({}, 0, what, threads); }},
      [&] {
        auto* const night = new Simulation(plan, migrated, records_story);  // never destroyed: threads are left
        const std::string problem = night->run();
        const std::chrono::duration<double> time = Threads::instance()->now();
        report(night->counts(), time.count(), problem, problem.empty() ? "" : night->story());
      });
  ::_exit(2);
}

Report read_report(const std::string& text, int status) {
  Report report;
  std::size_t size = 0;
  auto& counts = report.counts;
  const std::size_t end_of_line = text.find('\n');
  const bool is_read =
      std::sscanf(text.c_str(), "%lu %lu %lu %lu %lu %lf %zu", &counts.deliveries, &counts.kills, &counts.ends,
                  &counts.restarts, &counts.fingerprint, &report.simulated_seconds, &size) == 7;
  if (is_read && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    report.problem = text.substr(end_of_line + 1, size);
    report.story = text.substr(end_of_line + 1 + size + 1);
  } else if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGALRM)) {
    report.problem =
        fmt::format("the world has not ended within {} s of processor time, or {} s", longest_world, longest_wait);
  } else {
    report.problem = fmt::format("the simulator has crashed ({})",
                                 WIFSIGNALED(status) ? ::strsignal(WTERMSIG(status)) : "exit status");
  }
  return report;
}

/// The text that two failures of the same kind have in common.
std::string without_numbers(std::string problem) {
  std::erase_if(problem, [](char c) { return c >= '0' && c <= '9'; });
  return problem;
}

}  // namespace

Runner::~Runner() {
  for (const Child& each : children_) {
    ::kill(each.process, SIGKILL);
    ::waitpid(each.process, nullptr, 0);
    ::close(each.output);
  }
}

void Runner::start(const Plan& plan, int processor, bool records_story) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  const int process = ::fork();
  if (process < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (process == 0) run_child(plan, migrated_, processor, records_story, ends[1]);
  ::close(ends[1]);
  children_.push_back({.plan = plan, .processor = processor, .process = process, .output = ends[0]});
}

Runner::Ended Runner::wait() {
  while (true) {
    std::vector<pollfd> outputs;
    for (const Child& each : children_) outputs.push_back({.fd = each.output, .events = POLLIN, .revents = 0});
    ::poll(outputs.data(), outputs.size(), -1);
    for (std::size_t i = 0; i < children_.size(); ++i) {
      if (outputs[i].revents == 0) continue;
      std::array<char, 65536> part{};
      const ssize_t size = ::read(children_[i].output, part.data(), part.size());
      if (size > 0) {
        children_[i].text.append(part.data(), static_cast<std::size_t>(size));
        continue;
      }
      const Child ended = std::move(children_[i]);
      children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
      ::close(ended.output);
      int status = 0;
      ::waitpid(ended.process, &status, 0);
      return {ended.plan, ended.processor, read_report(ended.text, status)};
    }
  }
}

Report Runner::run(const Plan& plan) {
  Runner alone(migrated_);
  alone.start(plan, ::sched_getcpu(), true);
  return alone.wait().report;
}

Plan Runner::shrink(Plan plan, const std::string& problem) {
  const auto keep_if_fails = [&](const Plan& smaller) {
    if (without_numbers(run(smaller).problem) != without_numbers(problem)) return false;
    plan = smaller;
    return true;
  };
  std::set<std::string_view> kinds_of_work;
  for (const PlanSize& size : plan_sizes()) kinds_of_work.insert(size.work);
  kinds_of_work.erase("");
  for (const std::string_view work : kinds_of_work) {
    Plan smaller = plan;
    for (const PlanSize& size : plan_sizes()) {
      if (size.work == work) smaller.*size.member = 0;
    }
    if (smaller != plan) (void)keep_if_fails(smaller);
  }
  for (const std::string_view name : fault_names()) {
    Plan smaller = plan;
    smaller.remove_fault(name);
    if (smaller != plan) (void)keep_if_fails(smaller);
  }
  for (const PlanSize& size : plan_sizes()) {
    while (plan.*size.member > size.least()) {
      Plan smaller = plan;
      smaller.*size.member /= 2;
      if (!keep_if_fails(smaller)) break;
    }
  }
  return plan;
}

}  // namespace txinbox::sim
