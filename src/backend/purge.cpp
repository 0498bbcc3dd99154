#include "backend/purge.hpp"

#include <fmt/format.h>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

std::string old(const Dialect& dialect, const PurgeBatch& batch) {
  const PurgeTarget& target = batch.target;
  return fmt::format("{} < {}{}{}", target.time, dialect.before(batch.older_than), target.search.empty() ? "" : " AND ",
                     target.search);
}

}  // namespace

std::string key_columns(const PurgeTarget& target) {
  std::string columns;
  for (const auto& each : target.key) columns.append(columns.empty() ? "" : ", ").append(each.column);
  return columns;
}

std::string key_literals(const Dialect& dialect, const PurgeTarget& target, const std::vector<std::string>& key) {
  std::string literals = "(";
  for (std::size_t i = 0; i < key.size(); ++i) {
    if (i > 0) literals += ", ";
    literals += target.key[i].is_text ? dialect.text(key[i]) : dialect.bytes(key[i]);
  }
  return literals += ')';
}

// The search does not contain the condition `matches`: if many rows do not match, one statement would read all of them.
std::string look_sql(const Dialect& dialect, const PurgeBatch& batch, std::string_view keys_and_time) {
  const PurgeTarget& target = batch.target;
  return fmt::format("SELECT {}, CASE WHEN {} THEN 1 ELSE 0 END FROM {} WHERE {}{}{} ORDER BY {}, {} LIMIT {}",
                     keys_and_time, target.matches, dialect.table(target.table), old(dialect, batch),
                     batch.after.empty() ? "" : " AND ", batch.after, target.time, key_columns(target), batch.window);
}

std::string removal_condition(const Dialect& dialect, const PurgeBatch& batch) {
  return fmt::format("{} AND {}", old(dialect, batch), batch.target.matches);
}

PurgeReply choose(const Dialect& dialect, const PurgeBatch& batch, std::vector<PurgeCandidate>& candidates) {
  PurgeReply reply;
  std::size_t looked = 0;
  const PurgeCandidate* last = nullptr;
  for (PurgeCandidate& each : candidates) {
    if (reply.chosen == batch.limit) break;
    ++looked;
    last = &each;
    if (each.matches) ++reply.chosen;
  }
  reply.end = looked == candidates.size() && looked < batch.window;
  if (last != nullptr) {
    // The database searches an index with the first part of this condition. The second part implies the first.
    reply.reached = fmt::format("{0} >= '{1}' AND ({0} > '{1}' OR ({2}) > {3})", batch.target.time, last->time,
                                key_columns(batch.target), key_literals(dialect, batch.target, last->key));
  }
  candidates.resize(looked);
  std::erase_if(candidates, [](const PurgeCandidate& each) { return !each.matches; });
  return reply;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
