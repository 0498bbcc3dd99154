#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "support/command.hpp"
#include "support/test_database.hpp"

namespace txinbox::test {

inline const std::string tables = "name like 'txinbox_torture_%'";

inline long long tables_left(const TestDatabase& db) {
  return db.number("select count(*) from sqlite_master where type = 'table' and " + tables);
}

inline long long rows_left(const TestDatabase& db) {
  return db.number("select count(*) from txinbox_consumed_message");
}

// A storm with this many keys under this seed sends all of them before the first is delivered. So it does not redeliver
// acknowledged copies, and without kills only the seed decides what each handler does. storm.sh uses the same.
inline constexpr std::uint64_t seed = 329;
inline constexpr std::uint64_t key_count = 40;

inline Command::Arguments schedule(Command::Arguments more) {
  Command::Arguments arguments{"--seed", std::to_string(seed), "--keys", std::to_string(key_count), "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// How many imbalances of that kind were found.
inline long long count(const nlohmann::json& report, const std::string& what, const std::string& found) {
  long long number = 0;
  for (const auto& each : report.at("imbalances")) {
    if (each.at("what") == what && each.at("found").get<std::string>().starts_with(found)) ++number;
  }
  return number;
}

}  // namespace txinbox::test
