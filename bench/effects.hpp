#pragma once

#include <string_view>

namespace soci {
class session;
}

namespace txinbox::bench {

/// Checks that what was measured did its work: a benchmark of something that does less does not count.
///
/// Errors: `std::runtime_error` that names the variant.
class Effects {
 public:
  /// The session must outlive it, and be in no transaction when it is asked.
  explicit Effects(soci::session& sql) : sql_(sql), updates_(sum()) {}

  /// That the accounts have grown by so much since the last call.
  void expect_updates(std::string_view variant, long long count);

  /// That they have grown by so much since they were made.
  void expect_sum(std::string_view variant, long long count) const;

  /// That the inbox holds so many rows in all.
  void expect_claims(std::string_view section, long long count) const;

 private:
  long long sum() const;

  soci::session& sql_;
  long long updates_;
};

}  // namespace txinbox::bench
