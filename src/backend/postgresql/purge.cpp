// A purge on PostgreSQL: one statement for each batch. It removes the rows that it could lock without waiting. It finds
// them again by their ctid. A ctid is unique only within a partition, so the statement compares tableoid as well.

#include <fmt/format.h>

#include "backend/postgresql/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// Returns the statement of one batch. It returns how many rows were removed, matched and read, and the time, tableoid
/// and ctid of the last row.
std::string postgresql_purge_sql(const Dialect& dialect, const PurgeBatch& batch, int server_version) {
  const PurgeTarget& target = batch.target;
  const std::string table = dialect.table(target.table);
  const auto and_also = [](const std::string& condition) { return condition.empty() ? "" : " AND " + condition; };
  // The ctid alone finds the rows fast. IS TRUE makes PostgreSQL compare the pairs by a look-up in a hash table.
  // PostgreSQL can build a hash table from ctid values since version 14.
  const bool hashes_places = server_version >= 14'00'00;
  const auto is_in = [&](std::string_view rows) {
    return fmt::format(
        "ctid = ANY (ARRAY(SELECT place FROM {0})) AND ((tableoid, {1}) IN (SELECT part, {2} FROM {0})) IS TRUE", rows,
        hashes_places ? "ctid" : "CAST(ctid AS text)", hashes_places ? "place" : "CAST(place AS text)");
  };
  // Before PostgreSQL 13, a second column in ORDER BY would sort all old rows again for each batch. An index returns
  // rows of the same time in the order of their ctid. If a batch nevertheless skips a row, the next purge finds it.
  const bool sorts_by_parts = server_version >= 13'00'00;
  // `locked` checks the condition again, because a row may have changed since `look` has read it. `gone` also checks
  // it, because only its own condition decides what it removes.
  return fmt::format(
      "WITH look AS MATERIALIZED (SELECT tableoid AS part, ctid AS place, {time} AS since, {matches} AS matches "
      "FROM {table} WHERE {old}{after} ORDER BY {time}{place} LIMIT {window}), "
      "chosen AS MATERIALIZED (SELECT part, place, since FROM look WHERE matches ORDER BY since, part, place "
      "LIMIT {limit}), "
      "locked AS MATERIALIZED (SELECT tableoid AS part, ctid AS place FROM {table} WHERE {is_chosen} "
      "AND {old} AND {matches} FOR UPDATE SKIP LOCKED), "
      "gone AS (DELETE FROM {table} WHERE {is_locked} AND {old} AND {matches} RETURNING 1), "
      "count AS (SELECT (SELECT count(*) FROM gone) AS removed, (SELECT count(*) FROM chosen) AS chosen, "
      "(SELECT count(*) FROM look) AS looked) "
      "SELECT removed, count.chosen, looked, {since}, part, place FROM count LEFT JOIN LATERAL ("
      "SELECT since, part, place FROM look WHERE count.chosen < {limit} UNION ALL "
      "SELECT since, part, place FROM chosen WHERE count.chosen >= {limit} "
      "ORDER BY since DESC, part DESC, place DESC LIMIT 1) last ON true",
      fmt::arg("time", target.time), fmt::arg("matches", "(" + target.matches + ")"), fmt::arg("table", table),
      fmt::arg("old", fmt::format("{} < {}{}", target.time, dialect.before(batch.older_than), and_also(target.search))),
      fmt::arg("after", and_also(batch.after)), fmt::arg("window", batch.window), fmt::arg("limit", batch.limit),
      fmt::arg("is_chosen", is_in("chosen")), fmt::arg("is_locked", is_in("locked")),
      fmt::arg("place", sorts_by_parts ? ", tableoid, ctid" : ""), fmt::arg("since", dialect.utc_text("since")));
}

PurgeReply PostgresqlSession::purge_some(const PurgeBatch& batch) {
  PGconn* pg = connection();
  const auto result = change_with(postgresql_purge_sql(dialect(), batch, PQserverVersion(pg)));
  const auto number = [&](int column) { return static_cast<std::size_t>(number_in(field(result, 0, column))); };
  PurgeReply reply{.removed = number(0), .chosen = number(1), .reached = {}};
  const std::size_t looked = number(2);
  if (looked > 0) {
    reply.reached = fmt::format(
        "{0} >= CAST('{1}+00' AS timestamptz) AND ({0} > CAST('{1}+00' AS timestamptz) "
        "OR (tableoid, ctid) > (CAST({2} AS oid), CAST('{3}' AS tid)))",
        batch.target.time, field(result, 0, 3), field(result, 0, 4), field(result, 0, 5));
  }
  reply.end = reply.chosen < batch.limit && looked < batch.window;
  return reply;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
