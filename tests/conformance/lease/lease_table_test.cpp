// The statements of a lease, when a statement of another worker runs between two of them.

#include "tables/lease_table.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "pool/inbox_session.hpp"
#include "soci_adapter/soci_connection.hpp"
#include "support/effects.hpp"
#include "types/row_state.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;
using detail::LeaseOwner;
using detail::LeaseTable;

const Message order{.business_key = "order123"};

struct Table {
  EffectDatabase db;
  std::unique_ptr<soci::session> sql = db.session();
  detail::InboxSession session{backend::connection_of(*sql)};
  LeaseTable leases{*session, "svc", order};
  LeaseOwner holder{.name = "holder"};
  LeaseOwner other{.name = "other"};

  /// An expired lease of `holder`.
  backend::ClaimedRow run_out() const {
    REQUIRE(leases.insert(holder, "", 1ms));
    std::this_thread::sleep_for(10ms);
    return *leases.find();
  }
};

TEST_CASE("a statement of a lease that fails leaves no transaction open" * doctest::skip(on_sqlite3())) {
  const Table t;
  const std::string bad(10'000, '\xff');  // too long for MariaDB and MySQL, and no UTF-8 for PostgreSQL
  CHECK_THROWS((void)t.leases.insert(LeaseOwner{.name = bad}, "", 1h));
  REQUIRE(t.leases.insert(t.holder, "", 1h));
  CHECK(t.leases.find()->lease_remaining > 59min);
}

TEST_CASE("a lease has its full length when it is new, taken over or renewed, and has no end when it is completed") {
  const Table t;
  REQUIRE(t.leases.insert(t.holder, "", 1h));
  const auto granted = *t.leases.find();
  CHECK(granted.lease_remaining > 59min);
  REQUIRE(t.leases.release(t.holder, granted.lease_fence));
  REQUIRE(t.leases.take_over(t.other, "", 1h, *t.leases.find()));
  const auto taken = *t.leases.find();
  CHECK(taken.lease_remaining > 59min);
  CHECK(taken.lease_fence > granted.lease_fence);
  REQUIRE(t.leases.renew(t.other, taken.lease_fence, 2h));
  CHECK(t.leases.find()->lease_remaining > 119min);
  REQUIRE(t.leases.complete(t.other, taken.lease_fence, std::nullopt));
  CHECK(!t.leases.find()->lease_remaining);
  CHECK(t.db.number("select count(*) from txinbox_consumed_message where lease_owner is not null") == 0);
}

TEST_CASE("a worker that has read an expired lease does not take it over if its holder has renewed it since") {
  const Table t;
  const auto seen = t.run_out();
  CHECK(seen.lease_remaining <= 0ms);
  REQUIRE(t.leases.renew(t.holder, seen.lease_fence, 1h));
  CHECK(!t.leases.take_over(t.other, "", 1h, seen));
  CHECK(t.leases.find()->token == t.holder.token.bytes());
}

TEST_CASE("when two workers read the same expired lease, only the first takes it over") {
  const Table t;
  const auto seen = t.run_out();
  const LeaseOwner third{.name = "third"};
  REQUIRE(t.leases.take_over(t.other, "", 1ms, seen));
  std::this_thread::sleep_for(10ms);  // this lease has expired, too
  CHECK(!t.leases.take_over(third, "", 1h, seen));
  CHECK(t.leases.find()->token == t.other.token.bytes());
}

// These columns are NULL if the database could not read its clock.
TEST_CASE("a lease without an end or a fence counts as expired") {
  const Table t;
  for (const std::string without : {"lease_expires_at", "lease_fence"}) {
    CAPTURE(without);
    REQUIRE(t.leases.insert(t.holder, "", 1h));
    t.db.run("update txinbox_consumed_message set " + without + " = null");
    const auto seen = *t.leases.find();
    CHECK(seen.lease_remaining == 0ms);
    CHECK(t.leases.take_over(t.other, "", 1h, seen));
    CHECK(t.leases.find()->lease_remaining > 59min);
    t.db.run("delete from txinbox_consumed_message");
  }
}

TEST_CASE("the holder of a lease does not change its row after the row was parked") {
  const Table t;
  const auto fence = t.run_out().lease_fence;
  REQUIRE(t.leases.park(t.holder, fence));
  CHECK(!t.leases.renew(t.holder, fence, 1h));
  CHECK(!t.leases.release(t.holder, fence));
  CHECK(!t.leases.complete(t.holder, fence, std::nullopt));
  CHECK(t.leases.find()->state == txinbox::detail::RowState::parked);
}

}  // namespace
}  // namespace txinbox::test
