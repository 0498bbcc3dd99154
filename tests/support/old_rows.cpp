#include "support/old_rows.hpp"

namespace txinbox::test {

// Row number n of a statement is the one of key "k<n>".
void OldRows::insert(const std::string& consumer, int count, const std::string& time, const std::string& state) const {
  if (count == 0) return;
  const std::string first = std::to_string(first_);
  const std::string last = std::to_string(first_ + count - 1);
  first_ += count;
  const std::string token = on_postgresql() ? "'00000000-0000-4000-8000-000000000000'::uuid" : "x'00'";
  const std::string key = on_mysql() ? "concat('k', n)" : "'k' || n";
  const std::string rows = on_postgresql() ? "generate_series(" + first + ", " + last + ") as s(n)" : "s";
  const std::string series = on_postgresql() ? ""
                                             : "with recursive s(n) as (select " + first +
                                                   " union all select n + 1 from s where n < " + last + ") ";
  const std::string columns =
      "insert into txinbox_consumed_message (consumer, business_key, state, attempt_token, consumed_at) ";
  // MySQL's recursion ends with an error after a thousand rows, unless the statement sets another limit.
  if (on_mysql())
    run("set session " + std::string(on_mariadb() ? "max_recursive_iterations" : "cte_max_recursion_depth") +
        " = 1000000");
  run(columns + series + "select '" + consumer + "', " + key + ", '" + state + "', " + token + ", " + time + " from " +
      rows);
}

void OldRows::add(const std::string& consumer, int count, Age age, const std::string& state) const {
  const std::string step = "(n - " + std::to_string(first_) + ")";
  if (on_postgresql()) {
    insert(consumer, count, ago(age) + " + " + step + " * interval '1 millisecond'", state);
  } else if (on_mysql()) {
    insert(consumer, count, ago(age) + " + interval " + step + " * 1000 microsecond", state);
  } else {
    insert(consumer, count,
           "strftime('%Y-%m-%d %H:%M:%f', 'now', '-" + std::to_string(age.count()) + " seconds', '+' || (" + step +
               " / 1000.0) || ' seconds')",
           state);
  }
}

void OldRows::add_at_once(const std::string& consumer, int count, Age age) const {
  insert(consumer, count, ago(age), "consumed");
}

void OldRows::add_failed(const std::string& consumer, int count, Age age) const {
  for (int i = 0; i < count; ++i) {
    run("insert into txinbox_failed_message (consumer, business_key, attempts, first_error, first_failed_at, "
        "last_error, "
        "last_failed_at) values ('" +
        consumer + "', 'f" + std::to_string(first_other_++) + "', 1, 'x', " + ago(age) + ", 'x', " + ago(age) + ")");
  }
}

void OldRows::add_conflicts(const std::string& consumer, int count, Age age) const {
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(first_other_++);
    const std::string hash = on_postgresql() ? "'\\x" + std::string(64 - number.size(), '0') + number + "'"
                                             : "x'" + std::string(64 - number.size(), '0') + number + "'";
    run("insert into txinbox_conflicting_message (consumer, business_key, content_hash, original_hash, reason, "
        "deliveries, first_at, last_at) values ('" +
        consumer + "', 'f" + number + "', " + hash + ", " + hash + ", 'consumed', 1, " + ago(age) + ", " + ago(age) +
        ")");
  }
}

std::string OldRows::ago(Age age) {
  const std::string seconds = std::to_string(age.count());
  if (on_postgresql()) return "now() - interval '" + seconds + " seconds'";
  if (on_mysql()) return "utc_timestamp(6) - interval " + seconds + " second";
  return "strftime('%Y-%m-%d %H:%M:%f', 'now', '-" + seconds + " seconds')";
}

long long OldRows::claims_of(const std::string& consumer) const {
  return number("select count(*) from txinbox_consumed_message where consumer = '" + consumer + "'");
}

long long OldRows::claims_in(const std::string& state) const {
  return number("select count(*) from txinbox_consumed_message where state = '" + state + "'");
}

long long OldRows::claims_older_than(Age age) const {
  return number("select count(*) from txinbox_consumed_message where consumed_at < " + ago(age));
}

}  // namespace txinbox::test
