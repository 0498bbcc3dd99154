#pragma once

// The code that the examples of this folder share: a loop in place of a broker's, and functions for their test.

#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include <txinbox/txinbox.hpp>

/// For the test: ends the process in the middle of the order that the environment variable CRASH_AT names.
inline void crash_if_asked(const std::string& order) {
  const char* at = std::getenv("CRASH_AT");
  if (at != nullptr && order == at) std::raise(SIGKILL);
}

/// A listener that prints to stderr which orders run again, and why.
inline void log_retry(const txinbox::Event& event) {
  if (event.type != txinbox::EventType::retry) return;
  std::cerr << event.business_key << ": runs again after " << event.error_class << '\n';
}

/// Delivers each order, and prints the outcome. Returns the exit status: 1 if an order must be delivered again. `open`
/// makes a service with a new connection.
template <class Open>
int deliver(const std::vector<std::string>& orders, const Open& open) {
  int status = 0;
  // docs/guides/other-clients.md: the loop
  auto service = open();
  for (const std::string& order : orders) {
    try {
      const txinbox::Result result = service->consume(order);
      std::cout << order << ": " << to_string(result.outcome) << '\n';
      if (action_for(result) != txinbox::Action::acknowledge) status = 1;
    } catch (...) {
      std::cout << order << ": " << txinbox::describe_error(std::current_exception()) << std::endl;
      status = 1;
      // The connection may be lost. The consumer ends before its connection does.
      service.reset();
      service = open();
    }
  }
  return status;
}
