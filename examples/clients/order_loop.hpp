#pragma once

// What the examples of this folder share: a loop in place of a broker's, and a crash for their test.

#include <csignal>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include <txinbox/txinbox.hpp>

/// Dies in the middle of the order that the environment variable CRASH_AT names.
inline void crash_if_asked(const std::string& order) {
  const char* at = std::getenv("CRASH_AT");
  if (at != nullptr && order == at) std::raise(SIGKILL);
}

/// Delivers each order, and says what came of it. Returns the exit status: 1 if an order must be delivered again.
inline int deliver(const std::vector<std::string>& orders,
                   const std::function<txinbox::Result(const std::string&)>& consume) {
  int status = 0;
  for (const std::string& order : orders) {
    try {
      const txinbox::Result result = consume(order);
      std::cout << order << ": " << to_string(result.outcome) << '\n';
      if (action_for(result) != txinbox::Action::acknowledge) status = 1;
    } catch (...) {
      std::cout << order << ": " << txinbox::describe_error(std::current_exception()) << '\n';
      status = 1;
    }
  }
  return status;
}
