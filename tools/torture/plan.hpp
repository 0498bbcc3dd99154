#pragma once

#include <cstdint>
#include <string>

namespace txinbox::torture {

/// There are so many accounts that two transactions rarely lock the same one. The exception are the hot accounts, which
/// are the first ones.
inline constexpr int account_count = 500;
inline constexpr int hot_account_count = 2;
inline constexpr std::int64_t initial_balance = 1'000'000;

/// One transfer between two accounts: the effect of one business key.
struct Transfer {
  int from = 0;
  int to = 0;
  std::int64_t amount = 0;

  bool operator==(const Transfer&) const = default;
};

/// The decisions of the seed about one key.
struct KeyPlan {
  int copies = 1;  ///< How many copies of it are sent, 1 to 10.
  Transfer transfer;
  bool is_hot = false;       ///< The transfer is between hot accounts.
  bool stores = false;       ///< Its handler stores a result.
  bool has_content = false;  ///< Its deliveries have content, so that different content is a conflict.
  unsigned messages = 0;     ///< In a storm on the outbox: how many messages its handler adds, up to 3.
  bool is_prepared = false;  ///< Its handler uses statements prepared for the connection.
  std::string business_key;
};

/// The schedule: what the seed decides for each key.
class Plan {
 public:
  explicit Plan(std::uint64_t seed) : seed_(seed) {}

  std::uint64_t seed() const { return seed_; }

  KeyPlan key(std::uint64_t index) const;

  /// Keys that a collation, trimming or truncation would confuse.
  static std::string business_key(std::uint64_t index);

 private:
  std::uint64_t seed_;
};

}  // namespace txinbox::torture
