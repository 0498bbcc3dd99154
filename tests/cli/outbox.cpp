// The subcommands outbox and relay.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <nlohmann/json.hpp>
#include <txinbox/outbox.hpp>

#include "support/command.hpp"
#include "support/test_database.hpp"

using namespace txinbox::test;
using nlohmann::json;

namespace {

/// A folder with a program that publishes into the file "published".
class Publisher {
 public:
  explicit Publisher(const std::string& answer)
      : folder_(std::filesystem::temp_directory_path() / ("txinbox-relay-" + std::to_string(::getpid()))) {
    std::filesystem::create_directory(folder_);
    std::ofstream(folder_ / "publish.sh") << "cd " << folder_.string() << R"(
while read -r line; do
  id=${line#*\"id\":\"}; id=${id%%\"*}
  )" << answer << R"(
  echo "$line" >>published
  echo "{\"id\":\"$id\",\"published\":true}"
done
)";
  }
  ~Publisher() { std::filesystem::remove_all(folder_); }
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  std::string command() const { return "sh " + (folder_ / "publish.sh").string(); }

  std::string published() const {
    std::ostringstream text;
    text << std::ifstream(folder_ / "published").rdbuf();
    return text.str();
  }

 private:
  std::filesystem::path folder_;
};

std::string add(const TestDatabase& db, const std::string& key, const std::string& payload = "{}") {
  return txinbox::Outbox::add(*db.session(),
                              {.topic = "stock", .key = key, .type = "T", .payload = payload, .headers = {{"h", "1"}}});
}

std::size_t lines_in(const std::string& text) { return static_cast<std::size_t>(std::ranges::count(text, '\n')); }

}  // namespace

TEST_CASE("outbox lists waiting messages, retries and discards") {
  const TestDatabase db;
  CHECK(run({"outbox", "list"}, db.url()).out == "nothing found\n");
  CHECK(run({"outbox", "status"}, db.url()).out == "waiting 0, failing 0, parked 0\nno relay runs\n");
  const std::string id = add(db, "a");
  add(db, "b");
  db.run(
      "update txinbox_outbox_message set attempts = 3, last_error = 'no route', parked_at = created_at where "
      "aggregateid = 'a'");
  const auto status = json::parse(run({"outbox", "status", "--json"}, db.url()).out);
  CHECK(status.at("waiting") == 1);
  CHECK(status.at("parked") == 1);
  CHECK(status.at("free_parts") == 64);
  CHECK(status.at("relays").empty());
  const auto list = json::parse(run({"outbox", "list", "--json", "--payload", "--state", "parked"}, db.url()).out);
  REQUIRE(list.size() == 1);
  CHECK(list[0].at("id") == id);
  CHECK(list[0].at("key") == "a");
  CHECK(list[0].at("last_error") == "no route");
  CHECK(list[0].at("payload") == "{}");
  const Ended text = run({"outbox", "list", "--limit", "1"}, db.url());
  CHECK(text.out.find(id) != std::string::npos);
  CHECK(text.err.find("more than 1") != std::string::npos);

  CHECK(run({"outbox", "retry"}, db.url()).status == 2);
  CHECK(run({"outbox", "retry", "--all", id}, db.url()).status == 2);
  CHECK(run({"outbox", "retry", "x"}, db.url()).status == 2);
  CHECK(run({"outbox", "retry", "--all", "--topic", "other"}, db.url()).status == 1);
  CHECK(run({"outbox", "retry", id}, db.url()).out == "retried 1 messages\n");
  CHECK(run({"outbox", "retry", id}, db.url()).status == 1);
  CHECK(run({"outbox", "discard", "--all"}, db.url()).status == 1);
  CHECK(run({"outbox", "discard", "--all", "--state", "waiting", "--json"}, db.url()).out == "{\"discarded\":2}\n");
  CHECK(run({"outbox", "list", id}, db.url()).status == 1);
}

TEST_CASE("a filter without a value is refused, because it would choose all rows") {
  const TestDatabase db;
  add(db, "a");
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"outbox", "discard", "--all", "--state", "waiting", "--key", ""},
                                             {"outbox", "discard", "--all", "--state", "waiting", "--topic="},
                                             {"outbox", "discard", ""},
                                             {"outbox", "retry", "--all", "--topic", ""},
                                             {"failed", "discard", "--all", "--consumer", ""},
                                             {"failed", "retry", "--all", "--consumer", "c", "--error-class", ""},
                                             {"purge", "--older-than", "1d", "--consumer", ""}}) {
    CAPTURE(arguments[0]);
    CHECK(run(arguments, db.url()).status == 2);
  }
  CHECK(db.number("select count(*) from txinbox_outbox_message") == 1);
}

TEST_CASE("relay passes each message to the program, and removes what it answers") {
  const TestDatabase db;
  const Publisher publisher(":");
  const std::string id = add(db, "a", "it's");
  std::vector<txinbox::OutgoingMessage> more;
  for (int i = 0; i < 1'200; ++i) more.push_back({.topic = "stock", .key = "key " + std::to_string(i)});
  txinbox::Outbox::add(*db.session(), more);
  add(db, "binary", "\xff");
  const Ended ended = run({"relay", "--exec", publisher.command(), "--until-empty"}, db.url());
  CAPTURE(ended.err);
  CHECK(ended.status == 0);
  CHECK(ended.last_line() == "published 1202, failed attempts 0, parked 0");
  const std::string published = publisher.published();
  CHECK(lines_in(published) == 1'202);
  CHECK(published.substr(0, published.find('\n')) ==
        R"({"id":")" + id + R"(","topic":"stock","key":"a","type":"T","headers":{"h":"1"},"payload":"it's"})");
  CHECK(published.find("\"payload_base64\":\"/w==\"") != std::string::npos);
  CHECK(db.number("select count(*) from txinbox_outbox_message") == 0);
  CHECK(db.number("select count(*) from txinbox_outbox_relay") == 0);
}

TEST_CASE("a program can say that a message failed, or that it never can be published") {
  const TestDatabase db;
  const Publisher publisher(R"(case $line in
    *poison*) echo "{\"id\":\"$id\",\"error\":\"bad\",\"rejected\":true}"; continue;;
    *fails*) echo "{\"id\":\"$id\",\"error\":\"no\"}"; continue;;
  esac)");
  add(db, "a", "poison");
  add(db, "a", "good");
  add(db, "b", "fails");
  const Ended ended =
      run({"relay", "--exec", publisher.command(), "--until-empty", "--max-attempts", "1", "--json"}, db.url());
  CHECK(ended.status == 1);
  CHECK(ended.out == "{\"summary\":true,\"published\":1,\"failed\":0,\"parked\":2}\n");
  CHECK(ended.err.find("bad; parked") != std::string::npos);
  CHECK(lines_in(publisher.published()) == 1);
}

TEST_CASE("a program that ends, answers nonsense or hangs is started again, and nothing is lost" *
          doctest::test_suite("timed")) {
  const TestDatabase db;
  const Publisher publisher(R"(n=$(($(cat calls 2>/dev/null || echo 0) + 1)); echo $n >calls
  case $n in
    1) exit 1;;
    2) echo nonsense; continue;;
    3) echo '{"id":"other","published":true}'; continue;;
    4) exec sleep 600;;
  esac)");
  add(db, "a");
  const Ended ended = run({"relay", "--exec", publisher.command(), "--until-empty", "--timeout", "300ms"}, db.url());
  CAPTURE(ended.err);
  CHECK(ended.status == 0);
  CHECK(ended.last_line() == "published 1, failed attempts 0, parked 0");
  CHECK(lines_in(publisher.published()) == 1);
  CHECK(ended.err.find("has ended") != std::string::npos);
  CHECK(ended.err.find("not given") != std::string::npos);
  CHECK(ended.err.find("in time") != std::string::npos);
}

TEST_CASE("a program that ends at one message publishes the others, and the message is parked" *
          doctest::test_suite("timed")) {
  const TestDatabase db;
  const Publisher publisher("case $line in *poison*) exit 1;; esac");
  for (int i = 0; i < 20; ++i) add(db, "k" + std::to_string(i), i == 8 ? "poison" : "good");
  const Ended ended = run({"relay", "--exec", publisher.command(), "--until-empty", "--max-attempts", "3"}, db.url());
  CAPTURE(ended.err);
  CHECK(ended.status == 1);
  CHECK(ended.last_line() == "published 19, failed attempts 2, parked 1");
  CHECK(db.number("select attempts from txinbox_outbox_message") == 3);
}

TEST_CASE("a program that is slower than a batch makes progress, and its text cannot control the terminal" *
          doctest::test_suite("timed")) {
  const TestDatabase db;
  const Publisher publisher(R"(case $line in *poison*)
    printf '{"id":"%s","error":"\\u001b[31m","rejected":true}\n' "$id"; continue;; esac; sleep 0.1)");
  add(db, "poison");
  for (int i = 0; i < 30; ++i) add(db, "k" + std::to_string(i));
  const Ended ended = run({"relay", "--exec", publisher.command(), "--until-empty", "--timeout", "1s"}, db.url());
  CAPTURE(ended.err);
  CHECK(ended.last_line() == "published 30, failed attempts 0, parked 1");
  CHECK(lines_in(publisher.published()) < 60);
  CHECK(ended.err.find("\\x1b[31m; parked") != std::string::npos);
}

TEST_CASE("relay --until-empty goes on after an error of the database that passes" * doctest::test_suite("timed") *
          doctest::skip(!on_postgresql())) {
  const TestDatabase db;
  const Publisher publisher("sleep 2");
  add(db, "k");
  Command command({"relay", "--exec", publisher.command(), "--until-empty"}, db.url());
  REQUIRE(command.printed("publishes 64 of the 64 parts"));
  const auto other = db.session();
  other->begin();
  *other << "lock table txinbox_outbox_message in access exclusive mode";
  std::this_thread::sleep_for(std::chrono::seconds(12));  // the lock_timeout of a pool is 10 s
  CHECK_FALSE(command.has_ended());
  other->rollback();
  CHECK(command.wait().status == 0);
  CHECK(db.number("select count(*) from txinbox_outbox_message") == 0);
}

TEST_CASE("a signal ends the relay, and other relays can take its parts at once") {
  const TestDatabase db;
  const Publisher publisher(":");
  Command command({"relay", "--exec", publisher.command()}, db.url());
  REQUIRE(command.printed("publishes 64 of the 64 parts"));
  command.signal(SIGTERM);
  CHECK(command.wait().status == 4);
  CHECK(db.number("select count(*) from txinbox_outbox_relay") == 0);
}

TEST_CASE("without the tables the relay ends, and without a program the command line is wrong") {
  const TestDatabase db(TestDatabase::Tables::none);
  CHECK(run({"relay", "--exec", "cat"}, db.url()).status == 3);
  CHECK(run({"relay"}, db.url()).status == 2);
  CHECK(run({"relay", "--exec", "cat", "--to", "kafka://localhost:1"}, db.url()).status == 2);
  CHECK(run({"relay", "--to", "ftp://localhost:1"}, db.url()).status == 2);
  const Ended refused = run({"relay", "--to", "kafka://user:hunter2@localhost:1"}, db.url());
  CHECK(refused.status == 2);
  CHECK((refused.out + refused.err).find("hunter2") == std::string::npos);
  const Ended misspelled = run({"relay", "--too", "https://user:hunter2@localhost/"}, db.url());
  CHECK(misspelled.status == 2);
  CHECK((misspelled.out + misspelled.err).find("hunter2") == std::string::npos);
  CHECK(run({"relay", "--exec", "cat", "--timeout", "1"}, db.url()).status == 2);
  CHECK(run({"relay", "--exec", "cat", "--timeout", "25d"}, db.url()).status == 2);
  CHECK(run({"relay", "--exec", "cat", "--timeout", "20s"}, db.url()).status == 2);
  CHECK(run({"relay", "--exec", "cat", "--timeout", "1s", "--lease", "2s"}, db.url()).status == 2);
}
