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
  std::string outbox_key;  ///< The key of the messages that its handler adds: equal for equal `transfer.from`.
};

/// The schedule: what the seed decides for each key.
class Plan {
 public:
  /// `shards`: what a handler writes lies in one of so many shards, which the first bits of the MD5 of the business key
  /// choose. The number is a power of 2. The messages of the outbox lie there by the MD5 of their key, and accounts by
  /// the last bits of their number, in reverse order. This is how the functions binary_md5 and reverse_bits of Vitess
  /// place rows.
  explicit Plan(std::uint64_t seed, unsigned shards = 1) : seed_(seed), shards_(shards) {}

  std::uint64_t seed() const { return seed_; }
  unsigned shards() const { return shards_; }

  KeyPlan key(std::uint64_t index) const;

  /// Keys that a collation, trimming or truncation would confuse.
  static std::string business_key(std::uint64_t index);

  /// The key of the messages about a transfer: those of one account have one key.
  std::string outbox_key(const Transfer& transfer) const;

 private:
  std::uint64_t seed_;
  unsigned shards_;
};

}  // namespace txinbox::torture
