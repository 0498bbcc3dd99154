// The lists for operators are read page by page, with a cursor. No row is skipped, and none is shown twice.

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/failed_messages.hpp>
#include <txinbox/inspect.hpp>
#include <txinbox/operations.hpp>
#include <txinbox/outbox_messages.hpp>
#include <txinbox/txinbox.hpp>

#include "support/schema_tools.hpp"
#include "support/test_database.hpp"

namespace txinbox::test {
namespace {

/// Keys that a cursor or a statement could read as something else, and that some collations sort in another way.
std::vector<std::string> hostile_keys() {
  std::vector<std::string> keys = {"a",    "A",  "a ", "b",       "it's", "\"q\"",  "back\\slash", "%_",  ".",
                                   "f.61", "--", "é",  "e\u0301", "鍵",   "\u202e", "\U0010ffff",  "0x41"};
  keys.emplace_back(255, 'k');
  std::string wide;
  for (int i = 0; i < 85; ++i) wide += "鍵";
  keys.push_back(wide);
  return keys;
}

const std::string name = "sv'c é";

/// SQL for a time. Two rows with equal numbers have equal times.
std::string time_of(int number) {
  const std::string text = "2026-01-01 00:00:00." + std::to_string(100 + number);
  return here<std::string>("'" + text + "'", "'" + text + "'", "'" + text + "+00'");
}

std::string bytes_of(const std::string& hex) { return on_postgresql() ? "'\\x" + hex + "'" : "x'" + hex + "'"; }

using Insert = std::function<void(soci::session&, const std::string& consumer, const std::string& key, int time)>;

void insert_failed(soci::session& sql, const std::string& consumer, const std::string& key, int time) {
  sql << "insert into txinbox_failed_message (consumer, business_key, attempts, last_failed_at) values (:c, :k, 1, "
      << time_of(time) << ")",
      soci::use(consumer), soci::use(key);
}

void insert_conflicts(soci::session& sql, const std::string& consumer, const std::string& key, int time) {
  for (const char* hash : {"00", "ff27"}) {
    sql << "insert into txinbox_conflicting_message (consumer, business_key, content_hash, original_hash, reason, "
           "deliveries, first_at, last_at) values (:c, :k, "
        << bytes_of(hash) << ", " << bytes_of("01") << ", 'consumed', 1, " << time_of(0) << ", " << time_of(time)
        << ")",
        soci::use(consumer), soci::use(key);
  }
}

void insert_lease(soci::session& sql, const std::string& consumer, const std::string& key, int time) {
  const std::string token = "00000000000000000000000000000000";
  sql << "insert into txinbox_consumed_message (consumer, business_key, state, attempt_token, lease_owner, "
         "lease_fence, lease_expires_at, attempts, consumed_at) values (:c, :k, 'consuming', "
      << (on_postgresql() ? "'" + token + "'" : "x'" + token + "'") << ", 'w', 1, " << time_of(time) << ", 1, "
      << time_of(time) << ")",
      soci::use(consumer), soci::use(key);
}

void insert_outbox(soci::session& sql, const std::string& topic, const std::string& key, int) {
  Outbox::add(sql, OutgoingMessage{.topic = topic, .key = key, .payload = "p"});
}

void insert_audit(soci::session& sql, const std::string& consumer, const std::string& key, int time) {
  sql << "insert into txinbox_audit (at, actor, action, consumer, business_key, messages) values (" << time_of(time)
      << ", 'ann', 'retry', :c, :k, 1)",
      soci::use(consumer), soci::use(key);
}

template <class Item>
std::string key_of(const Item& item) {
  return item.consumer + "|" + item.business_key;
}
std::string key_of(const OutboxMessageInfo& item) { return item.topic + "|" + item.key; }
std::string key_of(const ConflictingContent& item) {
  return item.consumer + "|" + item.business_key + "|" + item.content_hash;
}

/// The business key in a result of `key_of`.
std::string second_part(const std::string& key) {
  const std::string rest = key.substr(key.find('|') + 1);
  return rest.substr(0, rest.find('|'));
}

using Keys = std::vector<std::string>;

/// One list: its function, its filter, and how to make a row of it.
template <class Filter, class Item>
struct Listed {
  std::vector<Item> (*list)(ConnectionRef, const Filter&);
  Insert insert;
  std::string table;
  std::string key_column = "business_key";

  Keys all(soci::session& sql, Filter filter = {}) const {
    Keys keys;
    for (const Item& item : list(sql, filter)) keys.push_back(key_of(item));
    return keys;
  }

  /// `between` is called after each page, with the keys of the page.
  Keys by_page(soci::session& sql, std::size_t limit, Filter filter = {},
               const std::function<void(const std::vector<Item>&)>& between = {}) const {
    filter.limit = limit;
    Keys keys;
    for (;;) {
      const std::vector<Item> page = list(sql, filter);
      CHECK(page.size() <= limit);
      for (const Item& item : page) keys.push_back(key_of(item));
      if (page.empty() || keys.size() > 1000) return keys;
      filter.after = page.back().cursor;
      if (between) between(page);
    }
  }
};

const Listed<FailedFilter, FailedMessage> failed{list_failed, insert_failed, "txinbox_failed_message"};
const Listed<ConflictFilter, ConflictingContent> conflicts{list_conflicts, insert_conflicts,
                                                           "txinbox_conflicting_message"};
const Listed<LeaseFilter, LeaseInfo> leases{list_leases, insert_lease, "txinbox_consumed_message"};
const Listed<OutboxFilter, OutboxMessageInfo> outbox{list_outbox, insert_outbox, "txinbox_outbox_message",
                                                     "aggregateid"};
const Listed<AuditFilter, AuditRecord> audit{list_audit, insert_audit, "txinbox_audit"};

/// Many rows have equal times.
template <class L>
void fill(soci::session& sql, const L& listed) {
  int number = 0;
  for (const std::string& key : hostile_keys()) {
    listed.insert(sql, name, key, number % 3);
    listed.insert(sql, "b", key, number++ % 2);
  }
}

template <class L>
void check_pages(const TestDatabase& db, const L& listed) {
  const auto sql = db.session();
  const Keys all = listed.all(*sql);
  CHECK(all.size() >= 2 * hostile_keys().size());
  CHECK(std::set<std::string>(all.begin(), all.end()).size() >= hostile_keys().size());
  for (const std::size_t limit : {1U, 2U, 7U, 1000U}) {
    CAPTURE(limit);
    CHECK(listed.by_page(*sql, limit) == all);
  }
}

template <class L>
void check_changes_between_pages(const TestDatabase& db, const L& listed) {
  const auto sql = db.session();
  const Keys before = listed.all(*sql);
  std::set<std::string> removed;
  int number = 0;
  const auto remove = [&](const std::string& key) {
    *sql << "delete from " << listed.table << " where " << listed.key_column << " = :k", soci::use(key);
    for (const std::string& each : before) {
      if (second_part(each) == key) removed.insert(each);
    }
  };
  const auto shown = listed.by_page(*sql, 3, {}, [&](const auto& page) {
    if (++number == 2) remove(second_part(key_of(page.back())));
    if (number == 4) remove("\U0010ffff");
    if (number > 5) return;
    for (int time = 0; time < 4; ++time) {
      listed.insert(*sql, time % 2 == 0 ? name : "zz", "new " + std::to_string(10 * number + time), time);
    }
  });
  CHECK(number > 5);
  for (const std::string& key : before) {
    CAPTURE(key);
    const auto times = std::ranges::count(shown, key);
    CHECK(times <= 1);
    if (!removed.contains(key)) CHECK(times == 1);
  }
  CHECK(std::set<std::string>(shown.begin(), shown.end()).size() == shown.size());
}

TEST_CASE("each list shows the same rows by page as at once, with equal times and hostile keys") {
  const TestDatabase db;
  const auto sql = db.session();
  SUBCASE("failed") {
    fill(*sql, failed);
    check_pages(db, failed);
    check_changes_between_pages(db, failed);
  }
  SUBCASE("conflicts") {
    fill(*sql, conflicts);
    check_pages(db, conflicts);
    check_changes_between_pages(db, conflicts);
  }
  SUBCASE("leases") {
    fill(*sql, leases);
    SUBCASE("with the index") {}
    SUBCASE("before the migration V4") {
      db.run("drop index txinbox_consumed_message_lease" +
             std::string(on_mysql() ? " on txinbox_consumed_message" : ""));
    }
    check_pages(db, leases);
    CHECK(leases.all(*sql, {.consumer = name}).size() == hostile_keys().size());
    CHECK(leases.by_page(*sql, 3, {.consumer = name}) == leases.all(*sql, {.consumer = name}));
    check_changes_between_pages(db, leases);
  }
  SUBCASE("audit") {
    fill(*sql, audit);
    check_pages(db, audit);
    check_changes_between_pages(db, audit);
  }
}

TEST_CASE("the outbox shows the same rows by page as at once") {
  const TestDatabase db;
  fill(*db.session(), outbox);
  check_pages(db, outbox);
  check_changes_between_pages(db, outbox);
}

TEST_CASE("failed messages without a time come last, and are shown once") {
  const TestDatabase db;
  const auto sql = db.session();
  fill(*sql, failed);
  db.run("update txinbox_failed_message set last_failed_at = null where consumer = 'b'");
  check_pages(db, failed);
  const auto all = list_failed(*sql);
  REQUIRE(all.size() == 2 * hostile_keys().size());
  CHECK(all[hostile_keys().size() - 1].last_failed_at);
  CHECK_FALSE(all[hostile_keys().size()].last_failed_at);
  check_changes_between_pages(db, failed);
}

TEST_CASE("a message without a counted failure is alone on its page") {
  const TestDatabase db;
  insert_lease(*db.session(), name, "k", 0);
  db.run("update txinbox_consumed_message set state = 'parked', lease_owner = null");
  FailedFilter filter{.consumer = name, .business_key = "k"};
  const auto found = list_failed(*db.session(), filter);
  REQUIRE(found.size() == 1);
  filter.after = found[0].cursor;
  CHECK(list_failed(*db.session(), filter).empty());
}

TEST_CASE("a change begins behind the cursor, as the list does") {
  const TestDatabase db;
  const auto sql = db.session();
  for (const char* key : {"1", "2", "3"}) insert_failed(*sql, name, key, 0);
  const auto all = list_failed(*sql);
  REQUIRE(all.size() == 3);
  CHECK(retry_failed(*sql, {.after = all[0].cursor}) == 2);
  REQUIRE(list_failed(*sql).size() == 1);
  CHECK(list_failed(*sql)[0].business_key == all[0].business_key);
}

template <class L, class Filter>
void refuses(soci::session& sql, const L& listed, Filter filter, const std::string& cursor) {
  CAPTURE(cursor);
  filter.after = cursor;
  try {
    (void)listed.list(sql, filter);
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_argument);
  }
}

TEST_CASE("a text that is not a cursor of the list is refused") {
  const TestDatabase db;
  const auto sql = db.session();
  const std::string time = "323032362d30312d30312030303a30303a3030";
  for (const std::string& rest :
       {std::string(""), std::string("."), std::string(".1"), std::string(".1.2.3.4"), ".." + std::string("61.61."),
        "." + time + ".61.61", "." + time + ".61.6.", "." + time + ".61.6G.", "." + time + ".61..",
        "." + time + "..61.", "." + time + ".61.61.00.00", "." + time + "27.61.61.", "." + time + ".61.ff.",
        "." + time + ".61." + std::string(512, '6') + "."}) {
    if (rest != "..61.61.") refuses(*sql, failed, FailedFilter{}, "f" + rest);
    refuses(*sql, conflicts, ConflictFilter{}, "c" + rest);
    refuses(*sql, leases, LeaseFilter{}, "l" + rest);
    refuses(*sql, failed, FailedFilter{}, "l" + rest);
  }
  for (const char* cursor : {"", ".", ".x", ".-1", ".1.", ".1 or 1=1", ".99999999999999999999"}) {
    refuses(*sql, audit, AuditFilter{}, std::string("a") + cursor);
    refuses(*sql, outbox, OutboxFilter{}, std::string("o") + cursor);
    refuses(*sql, outbox, OutboxFilter{}, std::string("a") + cursor);
  }
}

}  // namespace
}  // namespace txinbox::test
