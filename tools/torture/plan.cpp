#include "torture/plan.hpp"

#include <array>
#include <stdexcept>

#include <fmt/format.h>
#include <openssl/evp.h>

#include "torture/dice.hpp"

namespace txinbox::torture {
namespace {

/// Returns the number whose bits, in reverse order, are the first bits of the key's MD5.
unsigned shard_of(const std::string& key, unsigned shards) {
  if (shards == 1) return 0;
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  if (EVP_Digest(key.data(), key.size(), digest.data(), nullptr, EVP_md5(), nullptr) != 1) {
    throw std::runtime_error("OpenSSL refuses MD5");
  }
  unsigned shard = 0;
  for (unsigned bit = 1, mask = 0x80; bit < shards; bit <<= 1U, mask >>= 1U) {
    if ((digest[0] & mask) != 0) shard |= bit;
  }
  return shard;
}

}  // namespace

std::string Plan::business_key(std::uint64_t index) {
  constexpr std::uint64_t group_size = 6;
  constexpr std::size_t longest = 255;
  const std::uint64_t group = index / group_size;
  switch (index % group_size) {
    case 0:
      return fmt::format("order-{}", group);
    case 1:
      return fmt::format("Order-{}", group);
    case 2:
      return fmt::format("order-{} ", group);
    case 3:
      return fmt::format("\xc3\xb3rder-{}", group);  // an accent
    default: {
      // As long as a key may be. The two differ only in the last byte.
      std::string key = fmt::format("order-{}-", group);
      key.append(longest - 1 - key.size(), '.');
      return key + (index % group_size == 4 ? 'a' : 'b');
    }
  }
}

std::string Plan::outbox_key(const Transfer& transfer) const {
  std::string key = fmt::format("account-{}", transfer.from);
  const unsigned shard = static_cast<unsigned>(transfer.from) % shards_;
  for (int i = 1; shard_of(key, shards_) != shard; ++i) key = fmt::format("account-{}-{}", transfer.from, i);
  return key;
}

KeyPlan Plan::key(std::uint64_t index) const {
  Dice dice(seed_, {1, index});
  KeyPlan plan;
  plan.copies = 1 + static_cast<int>(dice.below(10));
  plan.is_hot = dice.chance(600);
  const int accounts = plan.is_hot ? hot_account_count : account_count / static_cast<int>(shards_);
  plan.transfer.from = static_cast<int>(dice.below(static_cast<std::uint64_t>(accounts)));
  plan.transfer.to = static_cast<int>(dice.below(static_cast<std::uint64_t>(accounts - 1)));
  if (plan.transfer.to >= plan.transfer.from) ++plan.transfer.to;
  plan.business_key = business_key(index);
  const unsigned shard = shard_of(plan.business_key, shards_);
  for (int* account : {&plan.transfer.from, &plan.transfer.to}) {
    *account = *account * static_cast<int>(shards_) + static_cast<int>(shard);
  }
  plan.transfer.amount = 1 + static_cast<std::int64_t>(dice.below(100));
  plan.stores = dice.chance(3'000);
  plan.has_content = dice.chance(5'000);
  plan.is_prepared = dice.chance(5'000);
  plan.messages = static_cast<unsigned>(dice.below(4));
  plan.outbox_key = outbox_key(plan.transfer);
  return plan;
}

}  // namespace txinbox::torture
