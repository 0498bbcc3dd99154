#include "effects.hpp"

#include <stdexcept>

#include <fmt/format.h>
#include <soci/soci.h>

namespace txinbox::bench {
namespace {

long long number(soci::session& sql, const char* query) {
  long long value = 0;
  sql << query, soci::into(value);
  return value;
}

void require(std::string_view who, const char* what, long long found, long long expected) {
  if (found == expected) return;
  throw std::runtime_error(fmt::format("{}: {} {}, expected {}: it did other work", who, found, what, expected));
}

}  // namespace

long long Effects::sum() const { return number(sql_, "SELECT sum(n) FROM bench_account"); }

void Effects::expect_updates(std::string_view variant, long long count) {
  const long long now = sum();
  require(variant, "updates", now - updates_, count);
  updates_ = now;
}

void Effects::expect_sum(std::string_view variant, long long count) const {
  require(variant, "updates in all", sum(), count);
}

void Effects::expect_claims(std::string_view section, long long count) const {
  require(section, "rows in the inbox", number(sql_, "SELECT count(*) FROM txinbox_consumed_message"), count);
}

}  // namespace txinbox::bench
