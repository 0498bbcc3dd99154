#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "database.hpp"

// Each section answers one question and returns its raw figures. The report computes the medians.
//
// Errors: a section throws if anything fails, and if a variant did not do its whole work.

namespace txinbox::bench {

using Json = nlohmann::ordered_json;

struct TransactionOptions {
  bool duplicates = true;  ///< Whether each round also measures each variant's messages again, as duplicates.
  int rounds = 21;
  std::chrono::seconds at_most{60};         ///< After this time, no round after the third begins.
  std::chrono::milliseconds slot{40};       ///< About how long a variant runs in a round.
  std::vector<std::string> variants = {};   ///< The names of the variants. All variants if it is empty.
  std::chrono::microseconds round_trip{0};  ///< The time that a proxy adds to each round trip.
  std::chrono::microseconds at_least{0};    ///< A message that takes less fails the run.
};

/// Compares `consume` and batches with transactions by hand.
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

/// Measures the throughput of `consume`, and of a transaction by hand with a table of keys, by the number of threads.
Json measure_threads(const Target&, const ThreadOptions&);

struct SizeOptions {
  int rounds = 21;
  std::chrono::seconds at_most{60};
  int messages = 400;
  std::vector<long long> rows = {1'000, 1'000'000, 10'000'000};
};

/// Measures a new key, a duplicate and a purged row in tables of several sizes. The keys are spread over the table.
Json measure_sizes(const Target&, const SizeOptions&);

struct PurgeCostOptions {
  int rounds = 7;
  std::chrono::milliseconds slot{2'000};  ///< How long each way is measured in a round.
  std::chrono::milliseconds rest{1'000};  ///< A pause before each slot, in which the server can finish its work.
  long long rows = 10'000'000;
  int purge_cpu = -1;  ///< The CPU to which the purge's thread is bound. -1: it is not bound.
};

/// Measures one message with a random key in a large table, with and without a purge.
Json measure_purge(const Target&, const PurgeCostOptions&);

struct RedeliveryOptions {
  int rounds = 5;
  int messages = 2'000;
};

/// Measures many redeliveries, with and without the cache of recent keys, and the cache alone.
Json measure_redeliveries(const Target&, const RedeliveryOptions&);

struct OutboxOptions {
  int rounds = 21;
  std::chrono::milliseconds slot{100};  ///< About how long a handler with a message in the outbox runs in a round.
  long long backlog = 1'000'000;        ///< The number of messages that a relay finds when it starts.
  long long deleted = 200'000;          ///< The number of rows that are removed under the snapshot. 0: not measured.
  std::size_t batch = 1'000;            ///< The batch size of the relays with a backlog.
  int keys = 100'000;                   ///< The number of keys of the messages in a backlog.
  int failing = 5'000;                  ///< The number of keys whose messages always fail, of `keys`.
  int failing_rounds = 5;
  int delays = 5;  ///< The number of messages in each round, both with and without `wake`.
};

/// Measures a handler that adds a message, the speed of a relay with and without an open snapshot and keys that fail,
/// and the delay after a commit.
Json measure_outbox(const Target&, const OutboxOptions&);

struct LoopOptions {
  int rounds = 7;
  int messages = 50'000;                  ///< The number of messages in a round, for the loop's own cost.
  std::chrono::milliseconds slot{2'000};  ///< How long each number of stuck lanes is measured in a round.
};

/// Compares `run` on messages from memory with the same batches without it. Measures the healthy lanes of `run` while
/// other lanes are stuck.
Json measure_loop(const Target&, const LoopOptions&);

struct GrowthOptions {
  int rounds = 7;
  std::chrono::milliseconds slot{200};                            ///< About how long each size is measured in a round.
  std::vector<int> outbox = {5'000, 30'000, 200'000, 1'000'000};  ///< The numbers of messages in the outbox.
};

/// Measures the time of one message by the size of a batch, its keys that fail, the workers and the stuck lanes of
/// `run`, and the messages in the outbox.
Json measure_growth(const Target&, const GrowthOptions&);

struct MemoryOptions {
  int messages = 1'000'000;
  int warm_up = 20'000;
};

/// Measures how much the process's memory grows while it consumes.
Json measure_memory(const Target&, const MemoryOptions&);

struct CommandOptions {
  int rounds = 3;
  std::chrono::seconds at_most{60};  ///< After this time, no second or third round begins.
  int lines = 1'000'000;
  int batch = 100;
  std::string command = {};  ///< The path of the txinbox command.
  std::string by_hand = {};  ///< The path of the program in C that does the same.
};

/// Compares the command with a program written by hand, on a file of JSON lines.
Json measure_command(const Target&, const CommandOptions&);

/// Returns the time of the disk's fdatasync, and the versions and settings of the database.
Json describe(const Target&);

}  // namespace txinbox::bench
