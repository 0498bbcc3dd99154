// Measures the operators' page on large tables: how long each of its pages takes, and what open pages cost a consumer.

#include <algorithm>
#include <array>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <soci/soci.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <txinbox/operator_page.hpp>
#include <txinbox/txinbox.hpp>

#include "business_work.hpp"
#include "effects.hpp"
#include "fill.hpp"
#include "measure.hpp"
#include "outbox.hpp"
#include "program.hpp"
#include "spread_keys.hpp"

namespace txinbox::bench {
namespace {

using Json = nlohmann::ordered_json;
using namespace std::chrono_literals;

constexpr auto refresh = 2s;  // of the page's script

struct Options {
  long long rows = 10'000'000;
  int views = 11;  ///< How often each page is asked for.
  int rounds = 5;  ///< Of the rates.
  long slot_ms = 30'000;
};

std::string hash_text(const std::string& database) {
  constexpr auto digits = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
  if (database == "postgresql") return fmt::format("CAST('\\x{}' AS bytea)", digits);
  return fmt::format("x'{}'", digits);
}

/// Fills the other tables. Of each thousand rows of the inbox, ten are parked, in ten error classes, and one is under
/// an expired lease. There are ten conflicts and ten entries of the audit, and a hundred messages wait in the outbox.
void fill_others(soci::session& sql, const std::string& database, const Options& options) {
  const long long some = options.rows / 100;
  const std::uint64_t step = spread_range / static_cast<std::uint64_t>(options.rows);
  const auto keys_of = [&](long long first, long long count) {
    return fmt::format("consumer = 'orders' AND business_key >= '{}' AND business_key < '{}'",
                       spread_key(static_cast<std::uint64_t>(first) * step),
                       spread_key(static_cast<std::uint64_t>(first + count) * step));
  };
  sql << "BEGIN";
  sql << "UPDATE txinbox_consumed_message SET state = 'parked' WHERE " + keys_of(0, some);
  sql << "UPDATE txinbox_consumed_message SET state = 'consuming', lease_owner = 'worker', lease_fence = 1, "
         "attempts = 1, lease_expires_at = consumed_at WHERE " +
             keys_of(some, some / 10);
  std::string error_class = "CASE substr(business_key, 15, 1)";
  for (int i = 0; i < 9; ++i) error_class += fmt::format(" WHEN '{}' THEN 'sql:2350{}'", i, i);
  error_class += " ELSE 'handler' END";
  sql << fmt::format(
      "INSERT INTO txinbox_failed_message (consumer, business_key, attempts, crashes, first_error, first_failed_at, "
      "last_error, last_failed_at, payload) "
      "SELECT consumer, business_key, 3, 0, {0}, consumed_at, {0}, consumed_at, {1} "
      "FROM txinbox_consumed_message WHERE {2}",
      error_class, hash_text(database), keys_of(0, some));
  sql << fmt::format(
      "INSERT INTO txinbox_conflicting_message (consumer, business_key, content_hash, original_hash, reason, "
      "deliveries, first_at, last_at) "
      "SELECT consumer, business_key, {0}, {0}, 'consumed', 1, consumed_at, consumed_at "
      "FROM txinbox_consumed_message WHERE {1}",
      hash_text(database), keys_of(2 * some, some));
  sql << fmt::format(
      "INSERT INTO txinbox_audit (at, actor, action, consumer, business_key, messages, reason) "
      "SELECT consumed_at, 'alice', 'retry', consumer, business_key, 1, 'mended' "
      "FROM txinbox_consumed_message WHERE {}",
      keys_of(3 * some, some));
  sql << "COMMIT";
  fill_outbox(sql, 10 * some, 100'000);
  if (database == "postgresql") {  // the connections of `txinbox serve` do the same
    sql << "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET jit = off', current_database()); END $$";
  }
  for (const char* table : {"consumed_message", "failed_message", "conflicting_message", "audit"}) {
    if (database == "postgresql") sql << fmt::format("VACUUM (ANALYZE, FREEZE) txinbox_{}", table);
    if (database == "mariadb") sql << fmt::format("ANALYZE TABLE txinbox_{}", table);
  }
}

http::Response get(http::OperatorPage& page, const std::string& target) {
  http::Response response = page.handle({.method = "GET", .target = target, .headers = {{"Host", "localhost"}}});
  if (response.status != 200) {
    throw std::runtime_error(fmt::format("{}: status {}: {}", target, response.status, response.body.substr(0, 500)));
  }
  return response;
}

/// The address of the second page of a list, which begins behind the hundredth row.
std::string second_page(http::OperatorPage& page, const std::string& list) {
  const Json view = Json::parse(get(page, "/api" + list).body);
  const auto next = view.at("next").get<std::string>();
  if (next.empty()) throw std::runtime_error(list + " has no second page");
  return list + (list.find('?') == std::string::npos ? "?" : "&") + "after=" + next;
}

/// The times of each page, in milliseconds, without a consumer beside it.
Json measure_views(http::OperatorPage& page, const Options& options) {
  const std::string key = spread_key(0);
  const std::vector<std::string> targets{"/",
                                         "/failed",
                                         "/failed?consumer=orders&state=parked&error_class=handler",
                                         "/failed?state=discarded",
                                         "/failed?state=failing",
                                         "/message?consumer=orders&key=" + key,
                                         "/conflicts",
                                         "/conflicts?consumer=orders",
                                         "/leases",
                                         "/leases?consumer=orders",
                                         "/outbox",
                                         "/outbox?topic=orders&state=waiting",
                                         "/outbox?key=order-00004711",
                                         "/audit",
                                         "/audit?consumer=orders&action=retry",
                                         "/doctor"};
  Json times = Json::object();
  std::vector<std::pair<std::string, std::string>> named;
  for (const std::string& each : targets) named.emplace_back(each, each);
  for (const char* list : {"/failed", "/conflicts", "/leases", "/outbox", "/audit"}) {
    named.emplace_back(std::string(list) + ", second page", second_page(page, list));
  }
  Progress progress("views", options.views);
  for (int i = 0; i < options.views; ++i) {
    for (const auto& [name, target] : named) {
      const auto start = Clock::now();
      (void)get(page, target);
      times[name].push_back(microseconds_since(start) / 1e3);
    }
    progress.step();
  }
  return times;
}

/// Two browsers that show these pages, until the destructor.
class Browsers {
 public:
  explicit Browsers(http::OperatorPage& page) {
    for (const char* target : {"/", "/failed"}) {
      threads_.emplace_back([this, &page, target](const std::stop_token& stop) {
        try {
          for (auto next = Clock::now(); !stop.stop_requested(); next += refresh) {
            (void)get(page, target);
            std::unique_lock lock(mutex_);
            stopped_.wait_until(lock, stop, next + refresh, [] { return false; });
          }
        } catch (...) {
          const std::lock_guard lock(mutex_);
          error_ = std::current_exception();
        }
      });
    }
  }

  /// @errors what a request has thrown.
  void stop() {
    threads_.clear();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::exception_ptr error_;
  std::vector<std::jthread> threads_;
};

/// Messages a second with random keys, with and without two open pages. The first round warms up.
Json measure_rates(http::OperatorPage& page, Pool& pool, Effects& effects, const Options& options) {
  TxConsumer consumer(pool, "page");
  const Handler handler = business_handler();
  SpreadKeys keys(options.rows);
  constexpr std::array ways{"alone", "with_pages"};
  Json rates = Json::object();
  Progress progress("rounds", options.rounds + 1);
  for (int round = -1; round < options.rounds; ++round) {
    rotated(ways.size(), round + 1, [&](std::size_t i) {
      std::optional<Browsers> browsers;
      if (i == 1) browsers.emplace(page);
      long long count = 0;
      const auto start = Clock::now();
      const std::chrono::milliseconds slot(round < 0 ? std::min(2'000L, options.slot_ms) : options.slot_ms);
      do {
        if (consumer.consume(keys.next(), handler).outcome != Outcome::consumed) {
          throw std::runtime_error("a new key was there already");
        }
        ++count;
      } while (Clock::now() - start < slot);
      const double seconds = microseconds_since(start) / 1e6;
      if (browsers) browsers->stop();
      effects.expect_updates(ways.at(i), count);
      if (round >= 0) rates[ways.at(i)].push_back(static_cast<double>(count) / seconds);
    });
    progress.step();
  }
  return rates;
}

Json measure(const Target& target, const Options& options) {
  const Database database(target);
  Pool pool = database.pool(6);
  {
    const auto connection = pool.acquire();
    fill(connection, "orders", options.rows);
    fill_others(connection, target.name, options);
  }
  Pool fresh = database.pool(6);  // without the settings of the filling
  const auto connection = fresh.acquire();
  Effects effects(connection);
  http::OperatorPage page(fresh, {.anyone_may_read = true});
  Json views = measure_views(page, options);
  return {{"rows", options.rows},
          {"views_ms", std::move(views)},
          {"messages_per_second", measure_rates(page, fresh, effects, options)}};
}

}  // namespace
}  // namespace txinbox::bench

int main(int argc, char** argv) {
  using namespace txinbox::bench;
  CLI::App app("Measures the operators' page on large tables");
  Target target;
  Options options;
  add_target(app, target, {"sqlite3", "mariadb", "postgresql"});
  app.add_option("--rows", options.rows, "Of the inbox");
  app.add_option("--views", options.views, "How often each page is asked for");
  app.add_option("--rounds", options.rounds);
  app.add_option("--slot-ms", options.slot_ms);
  CLI11_PARSE(app, argc, argv);
  return print_figures("txinbox_bench_page", [&] { return measure(target, options); });
}
