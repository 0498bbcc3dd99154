#include "faults/fault_database.hpp"

#include <doctest/doctest.h>

namespace txinbox::test {

Rows FaultDatabase::rows_of(const Message& message) const {
  return {effects_of(message.business_key + "/1"), effects_of(message.business_key + "/2")};
}

std::string FaultDatabase::claim_of(const Message& message) const {
  const std::string state =
      text("select state from txinbox_consumed_message where business_key = '" + message.business_key + "'");
  return state.empty() ? "none" : state;
}

void FaultDatabase::check_exactly_once(std::span<const Message> messages) const {
  for (const Message& each : messages) {
    CAPTURE(each.business_key);
    CHECK(rows_of(each) == Rows{1, 1});
    CHECK(claim_of(each) == "consumed");
    CHECK(text("select result from txinbox_consumed_message where business_key = '" + each.business_key + "'") ==
          "stored for " + each.business_key);
  }
}

void FaultDatabase::check_clean(soci::session& sql, const std::string& settings_when_new) const {
  CHECK(settings_of(sql) == settings_when_new);
  const long long before = effects_of("by itself");
  sql << "insert into effect values ('by itself')";
  CHECK(effects_of("by itself") == before + 1);
}

}  // namespace txinbox::test
