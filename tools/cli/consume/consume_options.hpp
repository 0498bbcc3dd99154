#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <txinbox/run.hpp>

#include "console/database_option.hpp"

namespace txinbox::cli {

/// The longest line that is read, in bytes.
inline constexpr std::size_t max_line_size = 64UL * 1024 * 1024;

/// The most bytes of a file of SQL.
inline constexpr std::size_t max_sql_size = max_line_size;

/// The most messages, and the most bytes of their lines, in one transaction.
inline constexpr std::size_t max_batch = 10'000;
inline constexpr std::size_t max_batch_size = 8UL * 1024 * 1024;

struct ConsumeOptions {
  DatabaseOption database;
  std::string consumer;
  std::string key;
  std::string message_id;            // a JSON Pointer; empty: none
  std::vector<std::string> content;  // JSON Pointers
  std::string sql;
  std::string sql_file;
  std::vector<std::string> binds;
  std::string from;          // a broker's URL; empty: the messages are in a file
  std::string dead_letters;  // the broker's queue or topic
  std::string order;         // how messages are ordered: lane or key; empty: see `order_of`
  std::string backoff;       // a duration; empty: that of RunOptions
  std::string idle_exit;     // a duration; empty: never
  bool hold_parked = false;  // a parked message keeps its place in its order
  std::size_t workers = 1;
  std::size_t breaker = BreakerOptions{}.failures;
  std::string file;  // empty or "-": standard input
  std::size_t batch = 100;
  int max_attempts = 0;  // 0: a message is never parked
  bool stop_on_error = false;
  bool keep_payload = false;  // the payload of a message that fails
  bool json = false;
  bool verbose = false;
};

}  // namespace txinbox::cli
