#pragma once

#include <exception>
#include <memory>
#include <string>
#include <utility>

#include <txinbox/txinbox.hpp>

#include "redis_server.hpp"

namespace txinbox::test {

inline const RetryPolicy once{.max_runs = 1};

/// The class of the error that a delivery throws. None if it throws nothing.
template <class F>
std::string class_of_error(F&& f) {
  try {
    f();
    return "nothing";
  } catch (...) {
    return error_class(std::current_exception());
  }
}

inline const std::string key_of_order = "txinbox:3:svc:order123";

struct RedisLeases {
  RedisServer server;
  std::shared_ptr<LeaseStore> store = open_redis(RedisServer::options());

  LeaseConsumer consumer(LeaseTerms terms = {}, ConsumerOptions options = {}) const {
    return {store, "svc", terms, std::move(options)};
  }
  std::string field(const std::string& name) { return server.field(key_of_order, name); }
};

}  // namespace txinbox::test
