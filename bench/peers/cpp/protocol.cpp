#include "protocol.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <mutex>
#include <sstream>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "../../database.hpp"
#include "../../measure.hpp"

namespace txinbox::bench {
namespace {

std::atomic<int> handler_runs{0};

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, '\t');) fields.push_back(field);
  return fields;
}

void run(Candidate& candidate, const std::string& prefix, int first, int count, int workers) {
  const std::vector<Message> all = messages(prefix, first, count);
  const std::size_t step = candidate.at_once();
  std::atomic<std::size_t> next{0};
  std::atomic<int> acknowledged{0};
  std::vector<double> times(all.size());
  const int runs_before = handler_runs;
  const auto work = [&](int worker) {
    for (std::size_t i = next.fetch_add(step); i < all.size(); i = next.fetch_add(step)) {
      const std::size_t size = std::min(step, all.size() - i);
      const auto start = Clock::now();
      try {
        acknowledged += candidate.deliver(worker, std::span(all).subspan(i, size));
      } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
      }
      std::fill_n(times.begin() + static_cast<std::ptrdiff_t>(i), size, microseconds_since(start));
    }
  };
  const auto start = Clock::now();
  {
    std::vector<std::jthread> threads;
    for (int worker = 1; worker < workers; ++worker) threads.emplace_back(work, worker);
    work(0);
  }
  const double took = microseconds_since(start);
  std::ranges::sort(times);
  say(fmt::format("done {:.1f} {} {} {:.1f} {:.1f}", took, acknowledged.load(), handler_runs - runs_before,
                  times[times.size() / 2], times[times.size() * 99 / 100]));
}

}  // namespace

void say(const std::string& line) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::puts(line.c_str());
  std::fflush(stdout);
}

void count_handler_run(int runs) { handler_runs += runs; }

void serve(Candidate& candidate) {
  say("ready");
  std::vector<std::thread> deliveries;
  for (std::string line; std::getline(std::cin, line);) {
    const auto fields = fields_of(line);
    if (fields[0] == "quit") break;
    if (fields[0] == "run") {
      run(candidate, fields[1], std::stoi(fields[2]), std::stoi(fields[3]), std::stoi(fields[4]));
    } else {
      deliveries.emplace_back([&candidate, fields] {
        const std::string answer = candidate.deliver(fields[2], std::stoi(fields[3]), fields[4]);
        say(fmt::format("one {} {:.150}", fields[1], answer));
      });
    }
  }
  std::_Exit(0);  // a handler may still hang
}

}  // namespace txinbox::bench
