// Commands that change many messages, and that an error ends: they say what they have done before.

#include <chrono>
#include <string>

#include <doctest/doctest.h>

#include "support/command.hpp"
#include "support/old_rows.hpp"

using namespace txinbox::test;

namespace {

/// 1,005 parked messages, on SQLite.
class Parked : public EffectDatabase {
 public:
  Parked() {
    const std::string numbers =
        " with recursive n(i) as (select 1 union all select i + 1 from n where i < 1005) select 'svc', i, ";
    run("insert into txinbox_consumed_message (consumer, business_key, state, attempt_token, consumed_at)" + numbers +
        "'parked', x'00', '2026-01-01 00:00:00.000' from n");
    run("insert into txinbox_failed_message (consumer, business_key, attempts, last_failed_at, payload)" + numbers +
        "1, '2026-01-01 00:00:00.000', x'61' from n");
  }

  /// The database refuses `event` on a table while `condition` holds.
  void refuse(const std::string& event, const std::string& condition) const {
    run("create trigger refuses before " + event + " when " + condition + " begin select raise(abort, 'refused'); end");
  }

  Ended command(const Command::Arguments& arguments) const { return txinbox::test::run(arguments, url()); }
};

constexpr const char* few_parked = "(select count(*) from txinbox_consumed_message where state = 'parked') <= 5";

// Other databases would need another way to fail at one message.
TEST_SUITE_BEGIN("before an error" * doctest::skip(!on_sqlite3()));

TEST_CASE("failed discard --all") {
  const Parked db;
  db.refuse("update on txinbox_consumed_message", few_parked);
  const Ended ended = db.command({"failed", "discard", "--all"});
  CHECK(ended.status == 3);
  CHECK(ended.out.empty());
  CHECK(ended.err.starts_with("txinbox: discarded at least 1000 messages before the error; run it again\n"));
}

TEST_CASE("redrive --stored") {
  const Parked db;
  db.refuse("insert on txinbox_outbox_message", "(select count(*) from txinbox_outbox_message) >= 1000");
  const Ended ended = db.command({"redrive", "--stored", "--to", "orders"});
  CHECK(ended.status == 3);
  CHECK(ended.err.starts_with("txinbox: added at least 1,000 to the outbox before the error; run it again\n"));
}

TEST_CASE("purge") {
  const OldRows db;
  db.add("svc", 20, std::chrono::hours(48));
  db.run(
      "create trigger refuses before delete on txinbox_consumed_message when (select count(*) from "
      "txinbox_consumed_message) <= 6 begin select raise(abort, 'refused'); end");
  const Ended ended = run({"purge", "--older-than", "24h", "--batch-size", "7"}, db.url());
  CHECK(ended.status == 3);
  CHECK(ended.err.starts_with("txinbox: purged 14 rows before the error\n"));
  CHECK(db.claims() == 6);
}

TEST_SUITE_END();

}  // namespace
