#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include <soci/soci.h>
#include <txinbox/tx_consumer.hpp>

#include "support/effects.hpp"

namespace txinbox::soak {

inline constexpr std::size_t pool_size = 4;
inline constexpr std::size_t worker_count = 3;

/// The state that the workers share.
struct Shared {
  const test::EffectDatabase& db;
  Pool& pool;
  TxConsumer consumer;     ///< on the pool
  TxConsumer with_memory;  ///< the same, with recent keys
  std::atomic<long> deliveries{0};
  std::atomic<long> lost{0};                                ///< connections that were killed
  std::array<std::atomic<long>, worker_count> used_keys{};  ///< of each worker

  Shared(const test::EffectDatabase& database, Pool& connections);
};

/// Consumes in every way until it is stopped. It delivers new and known keys, one by one and in batches, on the pool
/// and on its own session. Its handlers succeed, fail, prepare statements, lose their connection, or end the
/// transaction.
class Worker {
 public:
  Worker(Shared& shared, std::size_t number);

  void run(const std::stop_token& stop);

 private:
  struct Way {
    int weight;
    void (Worker::*run)();
  };
  static std::span<const Way> ways();

  bool one_in(int n) { return random_() % static_cast<std::uint32_t>(n) == 0; }
  Message new_message();
  Message some_message();
  void deliver(TxConsumer& consumer, const Message& message, const Handler& handler);
  void deliver_batch(TxConsumer& consumer, const Handler& handler, OnFailure on_failure);

  void consume_new();
  void consume_known();
  void consume_with_memory();
  void consume_prepared();
  void consume_on_own_session();
  void consume_other_content();
  void consume_and_store();
  void batch();
  void batch_prepared();
  void batch_with_failures();
  void batch_stopped();
  void own_transaction();
  void fail();
  void fail_in_sql();
  void fail_prepared();
  void lose_connection();
  void end_transaction();
  void look_around();

  Shared& shared_;
  std::size_t number_;
  std::minstd_rand random_;
  std::unique_ptr<soci::session> session_;
  TxConsumer on_session_;
};

}  // namespace txinbox::soak
