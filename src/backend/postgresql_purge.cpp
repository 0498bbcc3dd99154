// A purge on PostgreSQL: one statement a batch, which removes by the rows' places what it could lock without
// a wait.

#include <fmt/format.h>

#include "backend/postgresql_session.hpp"

namespace txinbox::inline TXINBOX_ABI::backend {

/// Gives, for one batch: how many were removed, matched and looked at, and the time and place of the last one.
std::string postgresql_purge_sql(const Dialect& dialect, const PurgeBatch& batch, int server_version) {
  const PurgeTarget& target = batch.target;
  const std::string table = dialect.table(target.table);
  const auto and_also = [](const std::string& condition) { return condition.empty() ? "" : " AND " + condition; };
  // Before PostgreSQL 13 a second column would sort all old rows anew for each batch. An index gives those of
  // one time by their places; what is passed over nevertheless, the next purge finds.
  const bool sorts_by_parts = server_version >= 13'00'00;
  // `locked` asks again whether a row matches: it may have changed since `look` saw it.
  return fmt::format(
      "WITH look AS MATERIALIZED (SELECT ctid AS place, {time} AS since, {matches} AS matches FROM {table} "
      "WHERE {time} < {before}{search}{after} ORDER BY {time}{place} LIMIT {window}), "
      "chosen AS MATERIALIZED (SELECT place, since FROM look WHERE matches ORDER BY since, place LIMIT {limit}), "
      "locked AS MATERIALIZED (SELECT ctid AS place FROM {table} WHERE ctid = ANY (ARRAY(SELECT place FROM chosen)) "
      "AND {matches} FOR UPDATE SKIP LOCKED), "
      "gone AS (DELETE FROM {table} WHERE ctid = ANY (ARRAY(SELECT place FROM locked)) RETURNING 1), "
      "count AS (SELECT (SELECT count(*) FROM gone) AS removed, (SELECT count(*) FROM chosen) AS chosen, "
      "(SELECT count(*) FROM look) AS looked) "
      "SELECT removed, count.chosen, looked, {since}, place FROM count LEFT JOIN LATERAL ("
      "SELECT since, place FROM look WHERE count.chosen < {limit} UNION ALL "
      "SELECT since, place FROM chosen WHERE count.chosen >= {limit} ORDER BY since DESC, place DESC LIMIT 1) last "
      "ON true",
      fmt::arg("time", target.time), fmt::arg("matches", "(" + target.matches + ")"), fmt::arg("table", table),
      fmt::arg("before", dialect.before(batch.older_than)), fmt::arg("search", and_also(target.search)),
      fmt::arg("after", and_also(batch.after)), fmt::arg("window", batch.window), fmt::arg("limit", batch.limit),
      fmt::arg("place", sorts_by_parts ? ", ctid" : ""), fmt::arg("since", dialect.utc_text("since")));
}

PurgeReply PostgresqlSession::purge_some(const PurgeBatch& batch) {
  PGconn* pg = connection();
  const auto result = change_with(postgresql_purge_sql(dialect(), batch, PQserverVersion(pg)));
  const auto number = [&](int column) { return static_cast<std::size_t>(number_in(field(result, 0, column))); };
  PurgeReply reply{.removed = number(0), .chosen = number(1), .reached = {}};
  const std::size_t looked = number(2);
  if (looked > 0) {
    reply.reached =
        fmt::format("{0} >= CAST('{1}+00' AS timestamptz) AND ({0} > CAST('{1}+00' AS timestamptz) OR ctid > '{2}')",
                    batch.target.time, field(result, 0, 3), field(result, 0, 4));
  }
  reply.end = reply.chosen < batch.limit && looked < batch.window;
  return reply;
}

}  // namespace txinbox::inline TXINBOX_ABI::backend
