#include "torture/torture.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <random>
#include <thread>

#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/error.hpp>
#include <txinbox/failed_messages.hpp>
#include <txinbox/outbox_messages.hpp>
#include <txinbox/schema.hpp>

#include "backend/registry.hpp"
#include "console/describe_error.hpp"
#include "console/exit_status.hpp"
#include "console/json_output.hpp"
#include "console/open_database.hpp"
#include "console/output.hpp"
#include "console/stop_signals.hpp"
#include "soci_adapter/soci_connection.hpp"
#include "torture/checker.hpp"
#include "torture/evidence.hpp"
#include "torture/open_transactions.hpp"
#include "torture/outbox_checker.hpp"
#include "torture/outbox_sink.hpp"
#include "torture/redrive_checker.hpp"
#include "torture/report.hpp"
#include "torture/scratch_tables.hpp"
#include "torture/storm_pool.hpp"
#include "torture/subject.hpp"

namespace txinbox::torture {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr const char* remedy = "txinbox-torture --remove-leftovers removes it";

// How long to wait for the database after the storm has failed already.
constexpr std::chrono::milliseconds little_patience{15'000};

// The most messages in the outbox that are counted.
constexpr std::size_t most_left = 10'000;

// The processes that run `redrive`.
constexpr unsigned operator_count = 3;

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const auto& text : texts) all += (all.empty() ? "" : ", ") + text;
  return all;
}

/// Runs `work` on its own session. While the database is not available, it tries again.
template <class Work>
auto on_database(const TortureOptions& options, std::chrono::milliseconds longest, const Work& work) {
  const auto give_up = steady_clock::now() + longest;
  while (true) {
    try {
      Pool pool = open_parent_pool(options.database);
      const Connection connection = pool.acquire();
      return work(connection.session());
    } catch (...) {
      if (!is_transient(std::current_exception()) || steady_clock::now() > give_up) throw;
    }
    std::this_thread::sleep_for(100ms);
  }
}

/// A storm needs an empty outbox, because its relays would read a service's messages, and a service's relay would read
/// the storm's. If an earlier storm left a relay that was killed, its lease soon expires.
void refuse_outbox_in_use(const std::string& url) {
  Pool pool = open_pool(url, {.connections = 1});
  const Connection connection = pool.acquire();
  const auto give_up = steady_clock::now() + 5s;
  while (true) {
    const OutboxStatus status = outbox_status(connection);
    const bool has_messages = status.waiting + status.failing + status.parked != 0;
    const bool has_relay = std::ranges::any_of(status.relays, [](const auto& each) { return each.remaining > 0ms; });
    if (!has_messages && !has_relay) return;
    if (has_messages || steady_clock::now() > give_up) {
      throw Error(ErrorCode::schema_mismatch,
                  "the outbox of this database is in use: it has messages, or a relay runs; use another database");
    }
    std::this_thread::sleep_for(100ms);
  }
}

void prepare(TortureOptions& options) {
  auto pool = cli::open_database(options.database);  // does not create a SQLite file
  const auto connection = pool.acquire();
  verify(connection);
  if (const auto found = scratch_leftovers(connection); !found.empty()) {
    throw Error(
        ErrorCode::schema_mismatch,
        fmt::format("found {}: another storm is running, or an earlier one left this; {}", joined(found), remedy));
  }
  options.storm.relay_urls = databases_of_relays(connection, options.database);
  if (has_outbox(options.storm.subject) || has_redrive(options.storm.subject)) {
    for (const std::string& url : options.storm.relay_urls) refuse_outbox_in_use(url);
  }
  create_scratch_tables(connection);
}

/// Whether the relays have published all messages of the storm, and none is parked. False while the database is not
/// available.
bool is_drained(const TortureOptions& options) {
  try {
    return on_database(options, 0ms, [](soci::session& sql) {
      // In this order: an operator can move a message from the parked ones to the outbox in between.
      return list_failed(sql, {.consumer = consumer_name, .state = FailedState::parked, .limit = 1}).empty() &&
             list_outbox(sql, {.topic = outbox_topic, .limit = 1}).empty();
    });
  } catch (...) {
    if (!is_transient(std::current_exception())) throw;
    return false;
  }
}

/// The file to which the relays publish, in the folder for temporary files.
class SinkFile {
 public:
  explicit SinkFile(const std::string& name) : path_((std::filesystem::temp_directory_path() / name).string()) {
    const Sink sink(path_);  // creates the file
  }
  ~SinkFile() {
    std::error_code ignored;
    if (!is_kept_) std::filesystem::remove(path_, ignored);
  }
  SinkFile(const SinkFile&) = delete;
  SinkFile& operator=(const SinkFile&) = delete;

  const std::string& path() const { return path_; }
  void keep() { is_kept_ = true; }

 private:
  std::string path_;
  bool is_kept_ = false;
};

/// If a worker was killed, its transaction may stay open until the server notices this.
std::vector<Imbalance> wait_for_transactions(const TortureOptions& options, const std::string& name) {
  const auto longest = options.storm.grace;
  const auto give_up = steady_clock::now() + longest;
  while (true) {
    const auto found = on_database(options, longest, [&](soci::session& sql) { return open_transaction(sql, name); });
    if (!found) return {};
    if (steady_clock::now() > give_up) return {{"the storm's sessions", "open transactions", "none", *found}};
    std::this_thread::sleep_for(100ms);
  }
}

std::string server_version(soci::session& sql) {
  return backend::database_of(sql).catalog(backend::connection_of(sql))->server_version();
}

Report check_storm(const TortureOptions& options, const Storm& storm, const std::string& name) {
  Report report{.is_leased = is_leased(options.storm.subject),
                .has_outbox = has_outbox(options.storm.subject),
                .has_redrive = has_redrive(options.storm.subject),
                .seed = options.storm.seed,
                .keys = storm.broker().keys().size(),
                .tally = storm.broker().tally(),
                .figures = storm.figures(),
                .letters = storm.dead_letters().tally(),
                .wrong = wait_for_transactions(options, name)};
  const auto add = [&](const std::vector<Imbalance>& more) {
    report.wrong.insert(report.wrong.end(), more.begin(), more.end());
  };
  std::uint64_t left = 0;
  RedriveRest rest{.letters = storm.dead_letters().size()};
  const Evidence evidence = on_database(options, options.storm.grace, [&](soci::session& sql) {
    if (report.has_outbox) left = list_outbox(sql, {.topic = outbox_topic, .limit = most_left}).size();
    if (report.has_redrive) {
      rest.outbox = list_outbox(sql, {.topic = outbox_topic, .limit = most_left}).size();
      rest.failed = list_failed(sql, {.consumer = consumer_name, .limit = most_left});
    }
    report.database = sql.get_backend_name();
    report.server_version = server_version(sql);
    return read_evidence(sql);
  });
  report.effects = evidence.ledger.size();
  for (const KeyLedger& key : storm.broker().keys())
    report.lost_commit_replies += key.is_acknowledged && key.consumed == 0 ? 1 : 0;
  add(check(Plan(options.storm.seed, options.storm.shards), storm.broker().keys(), evidence,
            report.is_leased ? Promise::at_least_once : Promise::exactly_once));
  if (report.has_outbox) {
    const auto published = read_sink(options.storm.sink);
    report.outbox = outbox_figures(published);
    add(check_outbox(Plan(options.storm.seed, options.storm.shards), report.keys, evidence.ledger, published, left));
  }
  if (report.has_redrive) add(check_redrive(report.keys, rest));
  add(storm.broker().wrong());
  add(storm.wrong());
  return report;
}

void try_to_remove(const TortureOptions& options) {
  try {
    on_database(options, little_patience, [](soci::session& sql) { remove_scratch(sql); });
  } catch (const soci::soci_error&) {
    cli::message(fmt::format("txinbox-torture: the storm's tables and rows could not be removed: {}; {}",
                             cli::describe_setup_error(std::current_exception()), remedy));
  }
}

int finish(const TortureOptions& options, const Report& report) {
  cli::Output output;
  output.line(options.json ? as_json(report) : as_text(report));
  if (report.balances()) {
    try_to_remove(options);
  } else {
    cli::message(
        fmt::format("txinbox-torture: the evidence is kept: the tables {}, {} and {}, and the consumer {} in the "
                    "inbox; {}",
                    account_table, ledger_table, resource_table, consumer_name, remedy));
    if (report.has_outbox) {
      cli::message(fmt::format("txinbox-torture: {} has the messages that were published", options.storm.sink));
    }
  }
  if (output.failed()) return cli::exit_stopped;
  return report.balances() ? cli::exit_ok : cli::exit_found;
}

}  // namespace

int torture(const TortureOptions& given) {
  TortureOptions options = given;
  cli::StopSignals signals;
  prepare(options);
  cli::message(fmt::format("seed {}", options.storm.seed));
  const std::string name = fmt::format("txinbox-torture-{:x}", std::random_device()());
  std::optional<SinkFile> sink;
  if (has_outbox(options.storm.subject)) {
    sink.emplace(name + ".sink");
    options.storm.sink = sink->path();
    options.storm.is_drained = [&given] { return is_drained(given); };
  }
  if (has_redrive(options.storm.subject)) {
    options.storm.operators = operator_count;
    options.storm.is_drained = [&given] { return is_drained(given); };
  }
  Storm storm(options.storm, options.database.url(), name, signals);
  auto end = Storm::End::fatal;
  try {
    end = storm.run();
  } catch (...) {  // a worker process could not be started
    try_to_remove(options);
    throw;
  }
  if (end == Storm::End::stopped) {
    try_to_remove(options);
    return cli::exit_stopped;
  }
  if (end == Storm::End::fatal) {
    cli::message("txinbox-torture: a worker cannot continue: " + storm.fatal());
    try_to_remove(options);
    return cli::exit_database;
  }
  try {
    if (end == Storm::End::gave_up) {
      const std::chrono::duration<double> grace = options.storm.grace;
      cli::message(fmt::format("txinbox-torture: nothing was acknowledged for {:g} s", grace.count()));
      on_database(options, 0ms, [](soci::session& sql) { sql << "select 1"; });  // the database may not come back
    }
    const Report report = check_storm(options, storm, name);
    if (sink && !report.balances()) sink->keep();
    return finish(options, report);
  } catch (const soci::soci_error&) {
    cli::message(
        fmt::format("txinbox-torture: the database does not come back: {}; the storm's tables and rows are still "
                    "there; {}",
                    cli::describe_setup_error(std::current_exception()), remedy));
    return cli::exit_database;
  }
}

int remove_leftovers(const TortureOptions& options) {
  auto pool = cli::open_database(options.database);
  const auto connection = pool.acquire();
  verify(connection);
  const auto found = scratch_leftovers(connection);
  remove_scratch(connection);
  auto removed = cli::Json::array();
  for (const auto& each : found) removed.append(each);
  cli::Json json;
  json.set("removed", std::move(removed));
  cli::Output output;
  output.line(options.json ? json.text() : found.empty() ? "there was nothing to remove" : "removed " + joined(found));
  return output.failed() ? cli::exit_stopped : cli::exit_ok;
}

}  // namespace txinbox::torture
