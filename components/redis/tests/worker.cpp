// A worker for kill_test.cpp. It delivers each key repeatedly until it may acknowledge it.
//
// Usage: txinbox_redis_worker URL JOURNAL KEYS

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <deque>
#include <exception>
#include <iostream>
#include <string>
#include <thread>

#include <txinbox/redis.hpp>
#include <txinbox/txinbox.hpp>

#include "journal.hpp"

namespace {

using namespace std::chrono_literals;

constexpr auto length = 5s;

int work(const std::string& url, const std::string& file, int keys) {
  const txinbox::test::Journal journal(file);
  const int process = ::getpid();
  txinbox::LeaseConsumer consumer(txinbox::open_redis(url), "svc", {.length = length});
  std::deque<int> waiting;
  for (int key = 0; key < keys; ++key) waiting.push_back(key);
  while (!waiting.empty()) {
    const int key = waiting.front();
    waiting.pop_front();
    try {
      const auto handler = [&](const txinbox::Lease& lease) {
        journal.add("start", key, process);
        std::this_thread::sleep_for(20ms);  // so that many kills occur in the handler
        // A process that was delayed may lose its lease while its handler runs. This must not count as an overlap.
        journal.add(lease.remaining() > length / 2 ? "end" : "late", key, process);
      };
      const auto result = consumer.consume({.business_key = "k" + std::to_string(key)}, handler);
      if (txinbox::action_for(result) == txinbox::Action::acknowledge) {
        journal.add("acknowledged", key, process);
        continue;
      }
    } catch (...) {
      const std::exception_ptr error = std::current_exception();
      if (txinbox::action_for(error) != txinbox::Action::redeliver) std::rethrow_exception(error);
    }
    waiting.push_back(key);
    std::this_thread::sleep_for(1ms);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return argc == 4 ? work(argv[1], argv[2], std::atoi(argv[3])) : 2;
  } catch (const std::exception& error) {
    std::cerr << "worker: " << error.what() << '\n';
    return 1;
  }
}
