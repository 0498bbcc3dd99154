#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include "torture/checker_storm.hpp"
#include "torture/outbox_checker.hpp"
#include "torture/outbox_handler.hpp"
#include "torture/outbox_sink.hpp"

using namespace txinbox::torture;

namespace {

/// A storm on the outbox that balances. The tests change it.
struct Balanced : StormRecord {
  Balanced() {
    for (std::uint64_t i = 0; i < 30; ++i) {
      add_key(i);
      const std::string run = "1-" + std::to_string(i);
      add_effect(i, run);
      for (unsigned number = 1; number <= plan.key(i).messages; ++number) publish(i, number);
    }
  }

  void publish(std::uint64_t i, unsigned number) {
    const std::string run = "1-" + std::to_string(i);
    published.push_back({.id = run + "/" + std::to_string(number),
                         .key = plan.key(i).outbox_key,
                         .payload = {.run = run, .number = number, .change = static_cast<std::int64_t>(i)}});
  }

  /// The first message of a run that added two or more.
  std::vector<Published>::iterator first_of_several() {
    return std::adjacent_find(published.begin(), published.end(), [](const Published& a, const Published& b) {
      return a.payload.run == b.payload.run && a.payload.number == 1 && b.payload.number == 2;
    });
  }

  std::vector<Imbalance> check() const { return check_outbox(plan, keys.size(), evidence.ledger, published, left); }

  bool names(const std::string& what) const {
    const auto all = check();
    return std::ranges::any_of(all, [&](const Imbalance& each) { return each.what == what; });
  }

  std::vector<Published> published;
  std::uint64_t left = 0;
};

}  // namespace

TEST_CASE("an outbox whose messages were published in order balances, also with repeats") {
  Balanced storm;
  REQUIRE(storm.published.size() > 20);
  CHECK(storm.check().empty());
  storm.published.push_back(storm.published.front());
  storm.published.push_back(storm.published.front());
  CHECK(storm.check().empty());
  CHECK(outbox_figures(storm.published).published_again == 2);
  CHECK(outbox_figures(storm.published).messages == storm.published.size() - 2);
}

TEST_CASE("a message that was lost, or is left in the outbox, is found") {
  Balanced storm;
  storm.published.erase(storm.first_of_several() + 1);
  CHECK(storm.names("a message was lost"));
  Balanced other;
  other.left = 3;
  CHECK(other.names("messages that were never published"));
}

TEST_CASE("a message that nobody added, or of a run that took no effect, is found") {
  Balanced storm;
  storm.published.back().payload.number = 4;
  CHECK(storm.names("a message that no handler added"));
  Balanced other;
  other.published.push_back({.id = "x", .key = "account-1", .payload = {.run = "9-9", .number = 1, .change = 1}});
  CHECK(other.check().size() == 1);
  CHECK(other.names("a message of a run that took no effect"));
}

TEST_CASE("a message that comes again under another id, and an id of two messages, are found") {
  Balanced storm;
  storm.published.push_back(storm.published.front());
  storm.published.back().id = "another";
  CHECK(storm.check().size() == 1);
  CHECK(storm.names("the id of a message"));
  Balanced other;
  (other.first_of_several() + 1)->id = other.first_of_several()->id;
  CHECK(other.check().size() == 1);
  CHECK(other.names("the message of an id"));
}

TEST_CASE("an order of messages of one key that is not that of their transactions is found") {
  Balanced storm;
  std::iter_swap(storm.first_of_several(), storm.first_of_several() + 1);
  CHECK(storm.check().size() == 1);
  CHECK(storm.names("an older message after a newer one"));

  // The message of an older transaction comes after one of a newer transaction of the account.
  Balanced other;
  auto at = other.first_of_several();
  at->payload.change += 1;
  CHECK(other.names("an older message after a newer one"));

  // Messages of two accounts have no order.
  Balanced third;
  std::ranges::stable_sort(third.published, {}, &Published::key);
  CHECK(third.check().empty());
}

TEST_CASE("a message under the key of another account is found") {
  Balanced storm;
  storm.published.back().key = "account-x";
  CHECK(storm.check().size() == 1);
  CHECK(storm.names("the key of a message"));
}

TEST_CASE("a sink returns its messages, and refuses lines that it did not write") {
  const auto file = std::filesystem::temp_directory_path() / ("txinbox-sink-" + std::to_string(::getpid()));
  {
    Sink first(file.string());
    Sink second(file.string());
    first.take({.topic = outbox_topic, .key = "account-1", .payload = to_text({"1-1", 1, 7}), .id = "a"});
    second.take({.topic = outbox_topic, .key = "account-2", .payload = to_text({"2-1", 2, -8}), .id = "b"});
    first.take({.topic = outbox_topic, .key = "account-1", .payload = to_text({"1-1", 1, 7}), .id = "a"});
  }
  const auto all = read_sink(file.string());
  REQUIRE(all.size() == 3);
  CHECK(all[0].id == "a");
  CHECK(all[1].key == "account-2");
  CHECK(all[1].payload.run == "2-1");
  CHECK(all[1].payload.number == 2);
  CHECK(all[1].payload.change == -8);
  CHECK(all[2].id == "a");
  std::ofstream(file, std::ios::app) << "c\taccount-1\tno payload\n";
  CHECK_THROWS_AS(read_sink(file.string()), std::runtime_error);
  std::filesystem::remove(file);
  CHECK_THROWS_AS(read_sink(file.string()), std::runtime_error);
  for (const char* bad : {"", "1-1", "1-1 1", "1-1 x 7", "1-1 1 7 8", " 1 7"}) CHECK_FALSE(read_payload(bad));
}
