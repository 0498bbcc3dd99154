#pragma once

#include <cstddef>
#include <vector>

#include <fmt/format.h>

#include "cli/known_consumer.hpp"
#include "console/command.hpp"
#include "console/database_option.hpp"
#include "console/exit_status.hpp"
#include "console/open_database.hpp"
#include "console/output.hpp"

namespace txinbox::cli {

/// Returns the filter with one more row than its limit, to find out whether there are more.
template <class Filter>
Filter one_more(Filter filter) {
  ++filter.limit;
  return filter;
}

/// Removes the row behind the limit. Returns whether there was one.
template <class Row>
bool cut_to(std::vector<Row>& rows, std::size_t limit) {
  const bool more = rows.size() > limit;
  if (more) rows.pop_back();
  return more;
}

inline void say_if_more(bool more, std::size_t limit) {
  if (more) message(fmt::format("txinbox: there are more than {}; --limit shows more", limit));
}

/// The options of a subcommand that only lists rows.
template <class Filter>
struct RowListOptions {
  DatabaseOption database;
  Filter filter{.limit = 100};
  bool json = false;

  void add_to(Command& command) {
    database.add_to(command);
    command.option("--consumer", filter.consumer, "Only of this consumer").type("NAME");
    command.option("--limit", filter.limit, "The most rows to list, from 1 to 100000")
        .type("N")
        .with_default()
        .range(1, 100'000);
    command.flag("--json", json, "Print JSON");
  }
};

/// Prints what `list(session, filter)` returns, as JSON or as a table.
template <class Filter, class List, class AsJson, class AsTable>
int print_rows(const RowListOptions<Filter>& options, const List& list, const AsJson& as_json,
               const AsTable& as_table) {
  auto pool = open_for_reading(options.database);
  auto connection = pool.acquire();
  auto rows = list(connection.session(), one_more(options.filter));
  const bool more = cut_to(rows, options.filter.limit);
  Output output;
  output.line(options.json ? as_json(rows) : as_table(rows));
  if (rows.empty()) say_if_unknown(connection.session(), options.filter.consumer);
  say_if_more(more, options.filter.limit);
  return output.failed() ? exit_stopped : exit_ok;
}

}  // namespace txinbox::cli
