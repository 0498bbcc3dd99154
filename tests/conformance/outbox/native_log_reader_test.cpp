// The report of doctor about an outbox that Debezium publishes.

#include <string>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/eventually.hpp"
#include "support/native_log_reader.hpp"
#include "support/schema_tools.hpp"

namespace txinbox::test {
namespace {

TEST_CASE("doctor warns of an old message if nobody reads the changes, as Debezium does, and only notes it otherwise" *
          doctest::skip(!has_log_of_changes())) {
  const TestDatabase db;
  Outbox::add(*db.session(), {.topic = "stock"});
  const std::string since = "2026-01-31 23:59:59";
  db.run("update txinbox_outbox_message set created_at = '" + since + (on_postgresql() ? "+00'" : "'"));
  const auto found = [&] {
    const auto findings = findings_about(*db.session(), "outbox");
    REQUIRE(findings.size() == 1);
    return std::string(to_string(findings.front().severity)) + ": " + findings.front().found;
  };
  CHECK(found().starts_with("warning: the oldest message that is not published was added at " + since));
  {
    LogReader reader(db, "txinbox_outbox_message");
    CHECK(eventually([&] { return found().starts_with("note: the oldest row was added at " + since); }));
    CHECK(found().ends_with("reads the changes"));
    reader.disconnect();
    CHECK(eventually([&] { return found().starts_with("warning: "); }));
    CHECK((found().find("nobody reads the replication slot") != std::string::npos) == on_postgresql());
  }
  CHECK(found().ends_with("no relay runs"));
}

}  // namespace
}  // namespace txinbox::test
