#include "stopping/workers.hpp"

#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <soci/soci.h>

namespace txinbox::test {

using namespace std::chrono_literals;

class Workers::Begun {
 public:
  Begun(const Workers& workers, std::string name) : workers_(workers), name_(std::move(name)) {}
  ~Begun() { workers_.lines_.write("late_handlers " + name_ + " " + std::to_string(late_)); }
  Begun(const Begun&) = delete;
  Begun& operator=(const Begun&) = delete;

  void operator()() {
    if (workers_.stop_.stop_requested()) ++late_;
  }

 private:
  const Workers& workers_;
  std::string name_;
  int late_ = 0;
};

template <class Consume>
void Workers::try_late(const std::string& consumer, const Consume& consume) {
  try {
    consume(Message{.business_key = "late"});
    lines_.write("late " + consumer + " begun");
  } catch (const Error& error) {
    lines_.write("late " + consumer + " " + std::string(to_string(error.code())));
  }
}

void Workers::one_by_one() {
  TxConsumer consumer(pool_, "single", {.stop = stop_});
  Begun begun(*this, "single");
  const auto handler = [&](soci::session& sql, Delivery& delivery) {
    begun();
    const std::string id = "single " + delivery.message().business_key;
    sql << "insert into effect values (:id)", soci::use(id, "id");
  };
  for (int i = 0; !stop_.stop_requested(); ++i) {
    const std::string key = std::to_string(i);
    try {
      if (action_for(consumer.consume({.business_key = key}, handler)) == Action::acknowledge)
        acknowledge("single", key);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::stopped) throw;
    }
  }
  try_late("single", [&](const Message& message) { (void)consumer.consume(message, handler); });
}

void Workers::in_batches() {
  constexpr int size = 20;
  TxConsumer consumer(pool_, "batch", {.stop = stop_});
  Begun begun(*this, "batch");
  const auto handler = [&](soci::session& sql, Delivery& delivery) {
    begun();
    const std::string id = "batch " + delivery.message().business_key;
    sql << "insert into effect values (:id)", soci::use(id, "id");
  };
  for (int i = 0; !stop_.stop_requested(); i += size) {
    std::vector<Message> messages;
    for (int k = i; k < i + size; ++k) messages.push_back({.business_key = std::to_string(k)});
    try {
      const auto results = consumer.consume_batch(messages, handler);
      for (std::size_t k = 0; k < results.size(); ++k) {
        if (action_for(results[k]) == Action::acknowledge) acknowledge("batch", messages[k].business_key);
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::stopped) throw;
    }
  }
  try_late("batch", [&](const Message& message) { (void)consumer.consume_batch(std::vector{message}, handler); });
}

/// The handler of every third message throws when it sees the stop. The others continue to their end. Every eighth
/// message takes long. Message 24 ends only by the stop.
void Workers::under_leases() {
  LeaseConsumer consumer(pool_, "lease", {.length = 60s, .heartbeat = 20ms}, {.claim_wait = 10min, .stop = stop_});
  Begun begun(*this, "lease");
  const auto handler = [&](Lease& lease) {
    begun();
    const std::string& key = lease.message().business_key;
    const int number = std::stoi(key);
    lines_.write("leased " + key);
    for (int step = 0; number == 24 || step < (number % 8 == 0 ? 20 : 2); ++step) {
      std::this_thread::sleep_for(5ms);
      if (number % 3 == 0 && lease.stop_token().stop_requested()) {
        lines_.write("given_back " + key);
        throw std::runtime_error("given back");
      }
    }
    lines_.write("effect " + key);
  };
  for (int i = 0; !stop_.stop_requested(); ++i) {
    const std::string key = std::to_string(i);
    try {
      if (action_for(consumer.consume({.business_key = key}, handler)) == Action::acknowledge)
        acknowledge("lease", key);
    } catch (const std::exception&) {
      if (!stop_.stop_requested()) throw;
    }
  }
  try_late("lease", [&](const Message& message) { (void)consumer.consume(message, handler); });
}

void Workers::waiting_for_a_lease() {
  LeaseConsumer consumer(pool_, "waiting", {}, {.claim_wait = 10min, .stop = stop_});
  const Result result = consumer.consume({.business_key = "held"}, [](Lease&) { throw std::logic_error("not held"); });
  lines_.write("waited lease " + std::string(to_string(result.outcome)));
}

void Workers::waiting_to_retry() {
  TxConsumer consumer(pool_, "waiting",
                      {.retry = {.initial_backoff = 10min, .max_backoff = 10min, .max_elapsed = 60min}, .stop = stop_});
  try {
    (void)consumer.consume({.business_key = "retry"},
                           [](soci::session&, Delivery&) { throw Error(ErrorCode::acquire_timeout, "transient"); });
  } catch (const Error& error) {
    lines_.write("waited retry " + std::string(to_string(error.code())));
  }
}

void Workers::waiting_for_a_connection() {
  TxConsumer consumer(pool_, "waiting", {.stop = stop_});
  try {
    (void)consumer.consume({.business_key = "connection"},
                           [](soci::session&, Delivery&) { throw std::logic_error("a connection was free"); });
  } catch (const Error& error) {
    lines_.write("waited connection " + std::string(to_string(error.code())));
  }
}

}  // namespace txinbox::test
