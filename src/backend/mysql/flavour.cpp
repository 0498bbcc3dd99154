#include "backend/mysql/flavour.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "base/ascii.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

// The names of one variable on different servers. The preferred name comes first.
constexpr std::array<std::string_view, 2> isolation_names = {"transaction_isolation", "tx_isolation"};
constexpr std::array<std::string_view, 2> read_only_names = {"transaction_read_only", "tx_read_only"};
constexpr std::array<std::string_view, 2> idle_names = {"idle_transaction_timeout", "wait_timeout"};
constexpr std::string_view max_statement_time = "max_statement_time";
constexpr std::string_view max_execution_time = "max_execution_time";
constexpr std::string_view cluster_wait = "wsrep_sync_wait";

// OceanBase accepts the variables of MySQL for the same purposes, and ignores them.
constexpr std::string_view ob_statement = "ob_query_timeout";
constexpr std::string_view ob_lock = "ob_trx_lock_timeout";
constexpr std::string_view ob_idle = "ob_trx_idle_timeout";

/// The words that may follow the number in a version string of MySQL, without digits. They come from MySQL's own
/// builds, from Percona, from clouds that run MySQL unchanged, and from Linux distributions.
constexpr std::array<std::string_view, 24> mysql_words = {
    "",       "log",   "debug", "asan", "valgrind", "commercial", "enterprise", "community",
    "google", "azure", "cloud", "u",    "rc",       "dmr",        "ubuntu",     "debian",
    "deb",    "el",    "fc",    "b",    "bpo",      "cluster",    "cll",        "lve"};

constexpr std::array<std::string_view, 12> other_products = {"tidb",      "oceanbase",   "vitess",     "planetscale",
                                                             "dolt",      "singlestore", "memsql",     "polardb",
                                                             "starrocks", "doris",       "clickhouse", "xpand"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Takes a number from the beginning of the text. If a dot follows the number, takes the dot, too.
std::optional<long long> take_number(std::string_view& text) {
  const auto end = std::min(text.find_first_not_of("0123456789"), text.size());
  if (end == 0) return std::nullopt;
  const long long number = number_in(text.substr(0, end));
  text.remove_prefix(end);
  if (text.starts_with('.')) text.remove_prefix(1);
  return number;
}

/// Whether every word of the suffix occurs in MySQL's builds.
bool is_suffix_of_mysql(std::string_view suffix) {
  std::string word;
  const auto is_known = [&] { return std::ranges::find(mysql_words, word) != mysql_words.end(); };
  for (const char c : detail::lower_case(suffix)) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      word += c;
    } else if (!is_digit(c)) {
      if (!is_known()) return false;
      word.clear();
    }
  }
  return is_known();
}

/// Some products have the plain version string of MySQL. Their version_comment contains their own name.
bool names_other_product(std::string_view version_comment) {
  const std::string text = detail::lower_case(version_comment);
  return std::ranges::any_of(other_products,
                             [&](std::string_view name) { return text.find(name) != std::string::npos; });
}

template <std::size_t N>
std::string_view first_of(const std::array<std::string_view, N>& names,
                          const std::set<std::string, std::less<>>& variables) {
  const auto* found = std::ranges::find_if(names, [&](std::string_view name) { return variables.contains(name); });
  return found == names.end() ? std::string_view() : *found;
}

Flavour mariadb(bool skips_locked) {
  Flavour flavour;
  flavour.has_all_variables = true;
  flavour.compound_statements = true;
  flavour.insert_returning = true;
  flavour.set_statement = true;
  flavour.applicable_roles = true;
  flavour.time_zone_in_statements = true;
  flavour.binary_log = true;
  flavour.may_be_in_cluster = true;
  flavour.sessions = "information_schema.PROCESSLIST";
  flavour.lock_existing = "LOCK IN SHARE MODE";
  flavour.when_locked = skips_locked ? "SKIP LOCKED" : "NOWAIT";
  flavour.isolation = "tx_isolation";
  flavour.read_only = "tx_read_only";
  flavour.statement_seconds = max_statement_time;
  flavour.idle_seconds = "idle_transaction_timeout";
  return flavour;
}

Flavour mysql() {
  Flavour flavour;
  flavour.has_all_variables = true;
  flavour.procedures = true;
  flavour.optimizer_hints = true;
  flavour.applicable_roles = true;
  flavour.time_zone_in_statements = true;
  flavour.binary_log = true;
  flavour.sessions = "performance_schema.processlist";  // from 8.0.22 on
  flavour.lock_existing = "LOCK IN SHARE MODE";
  flavour.when_locked = "SKIP LOCKED";
  flavour.share_without_wait = "FOR SHARE NOWAIT";
  flavour.isolation = "transaction_isolation";
  flavour.read_only = "transaction_read_only";
  flavour.statement_milliseconds = max_execution_time;
  flavour.idle_seconds = "wait_timeout";
  return flavour;
}

}  // namespace

bool ServerVersion::is_supported() const noexcept {
  switch (product) {
    case Product::mariadb:
      return std::tie(major, minor) >= std::make_tuple(10, 5);  // the version with RETURNING
    case Product::mysql:
      return std::tie(major, minor, patch) >= std::make_tuple(8, 0, 19);  // the version with VALUES ROW(…)
    case Product::unknown:
      break;
  }
  return false;
}

ServerVersion parse_server_version(std::string_view version) {
  // MariaDB before 11 puts this prefix before its version, for replicas that know only MySQL. MariaDB's client library
  // removes the prefix.
  constexpr std::string_view mariadb_prefix = "5.5.5-";
  const bool is_mariadb = version.find("MariaDB") != std::string_view::npos;
  if (is_mariadb && version.starts_with(mariadb_prefix)) version.remove_prefix(mariadb_prefix.size());

  ServerVersion found;
  const auto major = take_number(version);
  const auto minor = take_number(version);
  const auto patch = take_number(version);
  found.major = major.value_or(0);
  found.minor = minor.value_or(0);
  found.patch = patch.value_or(0);
  if (!patch) return found;
  if (is_mariadb) {
    found.product = ServerVersion::Product::mariadb;
  } else if (is_suffix_of_mysql(version)) {
    found.product = ServerVersion::Product::mysql;
  }
  return found;
}

std::string unknown_product(std::string_view handshake, const Settings& global) {
  const auto version = value_of(global, "version");
  const auto comment = value_of(global, "version_comment");
  const ServerVersion server = parse_server_version(version);
  if (const auto aurora = value_of(global, "aurora_version"); !aurora.empty()) return fmt::format("Aurora {}", aurora);
  if (server.product == ServerVersion::Product::unknown || names_other_product(comment)) {
    return fmt::format("{} ({})", version, comment);
  }
  if (server != parse_server_version(handshake)) {
    return fmt::format("{}, behind a proxy that calls it {}", version, handshake);
  }
  const bool in_cluster = !value_of(global, "wsrep_provider").empty() && value_of(global, "wsrep_provider") != "none";
  if (in_cluster && server.product == ServerVersion::Product::mysql) return fmt::format("{} with Galera", version);
  return {};
}

std::vector<std::string_view> Flavour::restored() const {
  std::vector<std::string_view> names = {isolation};
  names.insert(names.end(), common.begin(), common.end());
  names.insert(names.end(), {read_only, statement_seconds, statement_milliseconds, idle_seconds, statement_microseconds,
                             lock_microseconds, idle_microseconds, transaction_mode});
  std::erase(names, std::string_view());
  return names;
}

void Flavour::keep_existing(const std::set<std::string, std::less<>>& variables) {
  std::erase_if(common, [&](std::string_view name) { return !variables.contains(name); });
  isolation = first_of(isolation_names, variables);
  read_only = first_of(read_only_names, variables);
  if (variables.contains(max_statement_time)) statement_seconds = max_statement_time;
  if (variables.contains(max_execution_time)) statement_milliseconds = max_execution_time;
  idle_seconds = first_of(idle_names, variables);
  if (variables.contains(ob_statement)) statement_microseconds = ob_statement;
  if (variables.contains(ob_lock)) lock_microseconds = ob_lock;
  if (variables.contains(ob_idle)) idle_microseconds = ob_idle;
  if (!variables.contains(clock)) clock = {};
  cluster = variables.contains(cluster_wait);
}

Flavour flavour_of(const ServerVersion& version) {
  if (!version.is_supported()) return {};
  if (version.product == ServerVersion::Product::mysql) return mysql();
  return mariadb(version.major > 10 || version.minor >= 6);
}

std::vector<std::string_view> variables_to_ask_for() {
  const Flavour all;
  std::vector<std::string_view> names = all.common;
  names.insert(names.end(),
               {all.clock, max_statement_time, max_execution_time, cluster_wait, ob_statement, ob_lock, ob_idle});
  names.insert(names.end(), isolation_names.begin(), isolation_names.end());
  names.insert(names.end(), read_only_names.begin(), read_only_names.end());
  names.insert(names.end(), idle_names.begin(), idle_names.end());
  return names;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
