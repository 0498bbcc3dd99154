// Runs every section of the benchmark on SQLite with little work, so that a broken section is noticed. The test asserts
// no time. The sections themselves verify that the work was done.

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <set>
#include <stdexcept>

#include <soci/soci.h>

#include "effects.hpp"
#include "sections.hpp"
#include "variants.hpp"

using namespace txinbox::bench;

namespace {

struct Folder {
  Folder() {
    std::string path = (std::filesystem::temp_directory_path() / "txinbox-bench-test.XXXXXX").string();
    REQUIRE(::mkdtemp(path.data()) != nullptr);
    target.folder = path;
  }
  ~Folder() { std::filesystem::remove_all(target.folder); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  Target target{.name = "sqlite3", .folder = {}, .durable = false};
};

std::set<std::string> names_of(const Json& times, std::size_t rounds) {
  std::set<std::string> names;
  for (const auto& item : times.items()) {
    CAPTURE(item.key());
    CHECK(item.value().size() == rounds);
    for (const double value : item.value()) CHECK(value > 0);
    names.insert(item.key());
  }
  return names;
}

}  // namespace

TEST_CASE("every variant is measured in every round, with new keys and with duplicates") {
  const Folder folder;
  const Json result = measure_transactions(folder.target, {.rounds = 2, .slot = std::chrono::milliseconds(0)});
  CHECK(result["messages_per_round"] == 100);
  CHECK(names_of(result["new"], 2) == std::set<std::string>{"by_hand_no_dedup", "by_hand", "by_hand_soci", "consume",
                                                            "consume_soci_handler", "consume_execute",
                                                            "consume_session", "consume_native", "batch_10",
                                                            "batch_100", "batch_100_at_once", "by_hand_batch_100",
                                                            "by_hand_batch_100_at_once", "by_hand_lease", "lease"});
  CHECK(names_of(result["duplicate"], 2) ==
        std::set<std::string>{"by_hand", "by_hand_soci", "consume", "consume_soci_handler", "consume_execute",
                              "consume_session", "consume_native", "batch_10", "batch_100", "batch_100_at_once"});
}

TEST_CASE("an unknown variant is refused") {
  const Folder folder;
  CHECK_THROWS_AS((void)measure_transactions(folder.target, {.variants = {"no such variant"}}), std::runtime_error);
}

TEST_CASE("a variant that loses an update or makes it twice is detected") {
  const Folder folder;
  const Database database(folder.target);
  txinbox::Pool pool = database.pool(2);
  Variants variants(pool);
  Effects effects(variants.session());
  const auto job = messages("job", 0, 10);
  const Variant& by_hand = variants.all().at(1);
  by_hand.run(job);
  CHECK_THROWS_AS(effects.expect_updates("one lost", 11), std::runtime_error);
  CHECK_THROWS_AS(effects.expect_updates("one doubled", 9), std::runtime_error);
  CHECK_NOTHROW(effects.expect_updates("all new", 10));
  by_hand.run(job);
  CHECK_THROWS_AS(effects.expect_updates("duplicates that should have run", 10), std::runtime_error);
  CHECK_NOTHROW(effects.expect_updates("duplicates", 0));
  CHECK_NOTHROW(effects.expect_claims("all", 10));
  CHECK_THROWS_AS(effects.expect_claims("one more", 11), std::runtime_error);
}

TEST_CASE("a message that takes less time than the delay fails the run") {
  const Folder folder;
  TransactionOptions options{.rounds = 1, .slot = std::chrono::milliseconds(0), .variants = {"consume"}};
  options.at_least = std::chrono::seconds(60);
  CHECK_THROWS_AS((void)measure_transactions(folder.target, options), std::runtime_error);
}

TEST_CASE("the other sections return their figures") {
  const Folder folder;
  CHECK(run_variant(folder.target, {.variant = "consume_native", .messages = 20})["messages"] == 20);

  const Json threads =
      measure_threads(folder.target, {.rounds = 1, .slot = std::chrono::milliseconds(20), .threads = {1, 3}});
  CHECK(names_of(threads["messages_per_second"]["by_hand"], 1) == std::set<std::string>{"1", "3"});
  CHECK(names_of(threads["messages_per_second"]["consume"], 1) == std::set<std::string>{"1", "3"});

  const Json sizes = measure_sizes(folder.target, {.rounds = 1, .messages = 20, .rows = {100, 2000}});
  for (const char* times : {"microseconds", "duplicate_microseconds", "purge_microseconds"}) {
    CHECK(names_of(sizes[times], 1) == std::set<std::string>{"100", "2000"});
  }
  CHECK(sizes["disk_bytes"]["2000"] > sizes["disk_bytes"]["100"]);
  CHECK(sizes["cache_bytes"] > 0);
  CHECK(sizes["peak_resident_kib"] > 0);

  const Json purge = measure_purge(
      folder.target,
      {.rounds = 1, .slot = std::chrono::milliseconds(50), .rest = std::chrono::milliseconds(0), .rows = 20'000});
  CHECK(names_of(purge["microseconds"], 1) == std::set<std::string>{"alone", "purge", "purge_without_rest"});
  CHECK(names_of(purge["removed_per_second"], 1) == std::set<std::string>{"purge", "purge_without_rest"});
  CHECK(purge["percentiles"]["alone"]["50"] <= purge["percentiles"]["alone"]["100"]);

  const Json redeliveries = measure_redeliveries(folder.target, {.rounds = 1, .messages = 100});
  CHECK(names_of(redeliveries["microseconds"], 1) ==
        std::set<std::string>{"without_memory", "with_memory", "from_memory"});

  const Json outbox = measure_outbox(folder.target, {.rounds = 2,
                                                     .slot = std::chrono::milliseconds(0),
                                                     .backlog = 500,
                                                     .batch = 100,
                                                     .keys = 30,
                                                     .failing = 10,
                                                     .failing_rounds = 1,
                                                     .delays = 1});
  CHECK(names_of(outbox["microseconds"], 2) == std::set<std::string>{"no_message", "by_hand", "add"});
  CHECK(outbox["drain"]["messages_per_second"].size() == 10);
  CHECK(outbox["delay_ms"]["wake"].size() == 2);
  CHECK(outbox["delay_ms"]["poll"].size() == 2);
  CHECK(names_of(outbox["failing"]["messages_per_second"], 1) == std::set<std::string>{"without", "with"});
  CHECK(!outbox.contains("snapshots"));

  const Json loop = measure_loop(folder.target, {.rounds = 1, .messages = 300, .slot = std::chrono::milliseconds(20)});
  CHECK(names_of(loop["microseconds"], 1) == std::set<std::string>{"consume_batch", "run"});
  CHECK(names_of(loop["healthy_per_second"]["5"], 1) == std::set<std::string>{"0", "3"});
  CHECK(names_of(loop["healthy_per_second"]["1"], 1) == std::set<std::string>{"0", "7"});

  const Json growth =
      measure_growth(folder.target, {.rounds = 1, .slot = std::chrono::milliseconds(5), .outbox = {5'000, 6'000}});
  CHECK(names_of(growth["batch"], 1) == std::set<std::string>{"1", "3", "10", "30", "100", "300", "1000"});
  CHECK(names_of(growth["failing"], 1).size() == 6);
  CHECK(names_of(growth["workers"], 1).size() == 4);
  CHECK(names_of(growth["lanes"], 1).size() == 6);
  CHECK(names_of(growth["outbox"], 5) == std::set<std::string>{"5000", "6000"});

  const Json memory = measure_memory(folder.target, {.messages = 200, .warm_up = 50});
  CHECK(memory["growth_kib"].size() == 10);
  CHECK(memory["resident_kib"] > 0);

  CHECK(describe(folder.target)["fdatasync_us"] > 0);
}

TEST_CASE("a variant that does nothing is detected") {
  const Folder folder;
  const CommandOptions options{.rounds = 1, .lines = 100, .command = "/bin/true", .by_hand = "/bin/true"};
  CHECK_THROWS_AS((void)measure_command(folder.target, options), std::runtime_error);
}
