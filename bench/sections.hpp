#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "database.hpp"

// Each section measures one question and gives its raw figures; the report takes the medians.
//
// Errors: whatever goes wrong throws, also a variant that did not do its work.

namespace txinbox::bench {

using Json = nlohmann::ordered_json;

struct TransactionOptions {
  bool duplicates = true;  ///< Each variant's messages again in each round.
  int rounds = 21;
  std::chrono::seconds at_most{60};         ///< After this no round begins, once there were three.
  std::chrono::milliseconds slot{40};       ///< About how long a variant runs in a round.
  std::vector<std::string> variants = {};   ///< Empty: all.
  std::chrono::microseconds round_trip{0};  ///< Added by a proxy.
  std::chrono::microseconds at_least{0};    ///< A message that takes less fails the run.
};

/// One message, and batches, against the same by hand.
Json measure_transactions(const Target&, const TransactionOptions&);

struct VariantOptions {
  std::string variant = {};
  int messages = 1'000;
};

/// Runs one variant once and measures nothing: bench/instructions.sh counts the instructions of the process.
Json run_variant(const Target&, const VariantOptions&);

struct ThreadOptions {
  int rounds = 5;
  std::chrono::milliseconds slot{300};
  std::vector<int> threads = {1, 2, 4, 8, 16};
};

/// Throughput of `consume` and of by hand with dedup.
Json measure_threads(const Target&, const ThreadOptions&);

struct SizeOptions {
  int rounds = 21;
  std::chrono::seconds at_most{60};
  int messages = 400;
  std::vector<long long> rows = {1'000, 1'000'000, 10'000'000};
};

/// A new key, a duplicate and a purged row, spread over tables of several sizes.
Json measure_sizes(const Target&, const SizeOptions&);

struct PurgeCostOptions {
  int rounds = 7;
  std::chrono::milliseconds slot{2'000};  ///< How long each way is measured in a round.
  std::chrono::milliseconds rest{1'000};  ///< Before it, for what the server still has to do.
  long long rows = 10'000'000;
  int purge_cpu = -1;  ///< That the purge's thread is bound to; -1: to none.
};

/// One message with a random key in a large table, with and without a purge.
Json measure_purge(const Target&, const PurgeCostOptions&);

struct RedeliveryOptions {
  int rounds = 5;
  int messages = 2'000;
};

/// A storm of redeliveries with and without the memory of recent keys, and that memory alone.
Json measure_redeliveries(const Target&, const RedeliveryOptions&);

struct OutboxOptions {
  int rounds = 21;
  std::chrono::milliseconds slot{100};  ///< About how long a handler with a message in the outbox runs in a round.
  long long backlog = 1'000'000;        ///< How many messages a relay finds when it starts.
  long long deleted = 500'000;          ///< How many rows were removed under the snapshot; 0: not measured.
  std::size_t batch = 1'000;            ///< Of the relays with a backlog.
  int keys = 100'000;                   ///< Of the messages in the backlogs.
  int delays = 5;                       ///< Messages in each round, with the wake-up and without.
};

/// A message added by a handler, the speed of a relay, also under a held snapshot, and the delay after a commit.
Json measure_outbox(const Target&, const OutboxOptions&);

struct MemoryOptions {
  int messages = 1'000'000;
  int warm_up = 20'000;
};

/// How much the process grows while it consumes.
Json measure_memory(const Target&, const MemoryOptions&);

struct CommandOptions {
  int rounds = 3;
  std::chrono::seconds at_most{60};  ///< After this no second or third round begins.
  int lines = 1'000'000;
  int batch = 100;
  std::string command = {};  ///< The txinbox command.
  std::string by_hand = {};  ///< The same job in C.
};

/// The command on a file of JSON lines against a program written by hand; on SQLite.
Json measure_command(const Target&, const CommandOptions&);

/// The disk's fdatasync, and what the database says about itself.
Json describe(const Target&);

}  // namespace txinbox::bench
