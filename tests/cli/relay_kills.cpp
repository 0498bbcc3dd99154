// Relays that are killed: no message is lost, and no message of a key is published before an earlier one.
//
// TXINBOX_RELAY_KILLS is the number of kills. Without the variable, there are 4.

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <nlohmann/json.hpp>
#include <txinbox/txinbox.hpp>

#include "support/command.hpp"
#include "support/counts.hpp"
#include "support/test_database.hpp"

using namespace txinbox::test;
using namespace std::chrono_literals;

namespace {

int kills() {
  const char* text = std::getenv("TXINBOX_RELAY_KILLS");
  if (text != nullptr) return std::atoi(text);  // NOLINT(cert-err34-c): a wrong number is 0
  return 4;
}

/// The messages that all relays have published, line by line. One write appends each line.
class Published {
 public:
  explicit Published(std::filesystem::path file) : file_(std::move(file)) {}

  std::size_t count() {
    read();
    return ids_.size();
  }

  /// How many messages were first published before an earlier message of their key.
  int inversions() const { return inversions_; }
  std::size_t lines() const { return lines_; }

 private:
  void read() {
    std::ifstream in(file_);
    in.seekg(position_);
    std::string line;
    while (std::getline(in, line) && !in.eof()) {
      position_ += static_cast<std::streamoff>(line.size()) + 1;
      ++lines_;
      const auto json = nlohmann::json::parse(line);
      if (!ids_.insert(json.at("id").get<std::string>()).second) continue;
      int& last = last_[json.at("key").get<std::string>()];
      const int number = std::stoi(json.at("payload").get<std::string>());
      if (number != last + 1) ++inversions_;
      last = number;
    }
  }

  const std::filesystem::path file_;
  std::streamoff position_ = 0;
  std::size_t lines_ = 0;
  int inversions_ = 0;
  std::set<std::string> ids_;
  std::map<std::string, int> last_;
};

}  // namespace

TEST_CASE("relays that are killed lose nothing, and keep the order of each key" * doctest::test_suite("timed")) {
  const TestDatabase db;
  db.run("create table aggregate (id integer primary key, version integer not null)");
  constexpr int keys = 7;
  for (int i = 0; i < keys; ++i) db.run("insert into aggregate values (" + std::to_string(i) + ", 0)");
  const auto folder = std::filesystem::temp_directory_path() / ("txinbox-kills-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const auto file = folder / "published";
  // The program appends before it answers. So if it is killed between the two, a message is published again.
  std::ofstream(folder / "publish.sh") << "while read -r line; do id=${line#*\\\"id\\\":\\\"}; id=${id%%\\\"*}\n"
                                          "printf '%s\\n' \"$line\" >>"
                                       << file.string()
                                       << "\necho \"{\\\"id\\\":\\\"$id\\\",\\\"published\\\":true}\"; done\n";
  const auto start = [&] {
    return std::make_unique<Command>(Command::Arguments{"relay", "--exec", "sh " + (folder / "publish.sh").string(),
                                                        "--batch", "20", "--lease", "1s", "--timeout", "400ms"},
                                     db.url());
  };
  std::vector<std::unique_ptr<Command>> relays;
  for (int i = 0; i < 4; ++i) relays.push_back(start());

  std::atomic<bool> done = false;
  std::atomic<std::size_t> added = 0;
  std::thread writer([&] {
    txinbox::Pool pool = db.pool(1);
    txinbox::TxConsumer consumer(pool, "svc");
    for (int i = 0; !done; ++i) {
      const std::string key = std::to_string(i % keys);
      const auto result =
          consumer.consume({.business_key = std::to_string(i)}, [&](soci::session& sql, txinbox::Delivery&) {
            int version = 0;
            sql << "update aggregate set version = version + 1 where id = " + key;
            sql << "select version from aggregate where id = " + key, soci::into(version);
            txinbox::Outbox::add(sql, {.topic = "t", .key = key, .payload = std::to_string(version)});
          });
      if (result.outcome == txinbox::Outcome::consumed) ++added;
      std::this_thread::sleep_for(2ms);
    }
  });

  Published published(file);
  const auto wait_for = [&](std::size_t count) {
    const auto give_up = std::chrono::steady_clock::now() + 2min;
    while (published.count() < count && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(10ms);
    return published.count() >= count;
  };
  bool goes_on = true;
  for (int kill = 0; kill < kills() && goes_on; ++kill) {
    // The messages that are published after the last kill.
    goes_on = wait_for(added + 20);
    const std::size_t victim = static_cast<std::size_t>(kill) % relays.size();
    relays[victim]->signal(SIGKILL);
    (void)relays[victim]->wait();
    relays[victim] = start();
  }
  CHECK(goes_on);
  done = true;
  writer.join();
  CHECK(wait_for(added));
  CHECK(published.count() == added);
  CHECK(published.inversions() == 0);
  count(kills(), "relays killed");
  count(added, "messages published");
  count(published.lines() - published.count(), "of them published again");
  for (const auto& relay : relays) {
    relay->signal(SIGTERM);
    CHECK(relay->wait().status == 4);
  }
  std::filesystem::remove_all(folder);
}
