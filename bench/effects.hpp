#pragma once

#include <string_view>

namespace soci {
class session;
}

namespace txinbox::bench {

/// Checks that each measured variant has done all of its work. If a variant has done less, its figure is not valid.
///
/// Errors: `std::runtime_error` that names the variant.
class Effects {
 public:
  /// The session must outlive this object. When a check runs, the session must be in no transaction.
  explicit Effects(soci::session& sql) : sql_(sql), updates_(sum()) {}

  /// Checks that the sum of the accounts has grown by this number since the last call.
  void expect_updates(std::string_view variant, long long count);

  /// Checks that the sum of the accounts has grown by this number since the tables were created.
  void expect_sum(std::string_view variant, long long count) const;

  /// Checks that the inbox has this number of rows.
  void expect_claims(std::string_view section, long long count) const;

 private:
  long long sum() const;

  soci::session& sql_;
  long long updates_;
};

}  // namespace txinbox::bench
