// Many keys from a file: --keys-from.

#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "cli/orders.hpp"

using namespace txinbox::test;

namespace {

class KeyFile {
 public:
  explicit KeyFile(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }
  ~KeyFile() { std::filesystem::remove(path_); }
  KeyFile(const KeyFile&) = delete;
  KeyFile& operator=(const KeyFile&) = delete;

  std::string path() const { return path_; }

 private:
  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("txinbox_cli_keys_" + std::to_string(::getpid()));
};

/// Orders o1 to o4, which are consumed, and commands with their keys.
struct Consumed : Orders {
  Consumed() { consume(Orders::line(1) + Orders::line(2) + Orders::line(3) + Orders::line(4)); }

  Ended on_keys(Command::Arguments words, const std::string& keys) const {
    const KeyFile file(keys);
    words.insert(words.end(), {"--consumer", "orders", "--keys-from", file.path()});
    return run(words, db.url());
  }

  long long rows() const { return db.number("select count(*) from txinbox_consumed_message"); }
};

}  // namespace

TEST_CASE("show prints a block for each key of the file, and names the keys that have no row") {
  const Consumed orders;
  const Ended text = orders.on_keys({"show"}, "\xEF\xBB\xBFo1\r\n\no3\no1");
  CHECK(text.status == 0);
  CHECK(text.err.empty());
  CHECK(text.out.starts_with("consumer      orders\nbusiness key  o1\n"));
  CHECK(text.out.find(" UTC\n\nconsumer      orders\nbusiness key  o3\n") != std::string::npos);
  CHECK(text.out.find("o1", text.out.find("o3")) == std::string::npos);
  const Ended some = orders.on_keys({"show", "--json"}, "o1\nx\no2\n");
  CHECK(some.status == 1);
  CHECK(some.err == "txinbox: line 2: there is no row of the business key 'x'\n");
  const auto end = some.out.find('\n');
  CHECK(nlohmann::json::parse(some.out.substr(0, end)).at("business_key") == "o1");
  CHECK(nlohmann::json::parse(some.out.substr(end + 1)).at("business_key") == "o2");
}

TEST_CASE("forget removes the rows of a file's keys, and says of each whether it was there") {
  const Consumed orders;
  const Ended all = orders.on_keys({"forget"}, "o1\no2\no1\n");
  CHECK(all.status == 0);
  CHECK(all.out == "forgotten 2 of 2 keys: the next delivery of each runs again\n");
  CHECK(orders.rows() == 2);
  const Ended some = orders.on_keys({"forget", "--json"}, "o2\no3\n");
  CHECK(some.status == 1);
  CHECK(some.out == "{\"business_key\":\"o2\",\"forgotten\":false}\n{\"business_key\":\"o3\",\"forgotten\":true}\n");
  CHECK(some.err == "txinbox: line 1: there is no row of the business key 'o2'\n");
  const Ended pipe = run({"forget", "--consumer", "orders", "--keys-from", "-"}, orders.db.url(), "o4\n");
  CHECK(pipe.status == 0);
  CHECK(orders.rows() == 0);
}

TEST_CASE("a file with an invalid key is refused as a whole, and the line is named") {
  const Consumed orders;
  const auto refused = [&](const std::string& keys, const std::string& why) {
    for (const Command::Arguments& words : {Command::Arguments{"forget"}, {"failed", "retry"}, {"show"}}) {
      const Ended ended = orders.on_keys(words, keys);
      CAPTURE(ended.err);
      CHECK(ended.status == 2);
      CHECK(ended.out.empty());
      CHECK(ended.err.find(why) != std::string::npos);
    }
    CHECK(orders.rows() == 4);
  };
  refused("o1\n" + std::string(256, 'k') + "\n", ": line 2: the business key has 256 bytes");
  refused("o1\n" + std::string(100'000, 'k') + "\n", ": line 2: it has more than 65536 bytes");
  refused("o1\n\n\xff\n", ": line 3: the business key is not valid UTF-8");
  refused(std::string("o1\na\0b\n", 7), ": line 2: the business key holds a NUL byte");
  refused("", ": there is no key in it");
  refused("\n\r\n", ": there is no key in it");
  for (const Command::Arguments& words : {Command::Arguments{"forget", "--consumer", "orders"},
                                          {"forget", "--consumer", "orders", "--keys-from", "/nonexistent/x"},
                                          {"forget", "--consumer", "orders", "--keys-from", "/"},
                                          {"forget", "--consumer", "orders", "--keys-from", "x", "o1"},
                                          {"failed", "retry", "--keys-from", "x"},
                                          {"failed", "retry", "--consumer", "orders", "--keys-from", "x", "--all"},
                                          {"failed", "list", "--consumer", "orders", "--keys-from", "x", "--payload"},
                                          {"failed", "discard", "--consumer", "orders", "--keys-from", "x", "o1"}}) {
    const Ended ended = run(words, orders.db.url());
    CHECK(ended.status == 2);
    CHECK(ended.err.starts_with("txinbox: "));
  }
  CHECK(orders.rows() == 4);
}

TEST_CASE("failed list, retry and discard accept a file of keys, and name the unchanged ones") {
  const Orders orders;
  std::string bad;
  for (const char* key : {"o1", "o2", "o3", "o4"})
    bad += R"({"no":")" + std::string(key) +
           R"(","sku":null,"qty":1})"
           "\n";
  orders.consume(bad, {"--max-attempts", "1"});
  orders.db.run("update txinbox_consumed_message set state = 'torn' where business_key = 'o2'");
  const auto failed = [&](Command::Arguments words, const std::string& keys) {
    words.insert(words.begin(), "failed");
    words.insert(words.end(), {"--consumer", "orders", "--keys-from", "-"});
    return run(words, orders.db.url(), keys);
  };
  const Ended listed = failed({"list", "--json"}, "o3\nx\no1\n");
  CHECK(listed.status == 1);
  CHECK(listed.err == "txinbox: line 2: no failed message of the business key 'x' is chosen\n");
  const auto json = nlohmann::json::parse(listed.out);
  REQUIRE(json.size() == 2);
  CHECK(json[0].at("business_key") == "o3");
  CHECK(json[1].at("business_key") == "o1");
  CHECK(failed({"list", "--limit", "1"}, "o3\no1\n").err == "txinbox: there are more than 1; --limit shows more\n");
  const Ended limited = failed({"list", "--limit", "1"}, "o3\no1\no4\nx\n");
  CHECK(limited.status == 1);
  CHECK(limited.err.starts_with("txinbox: line 4: no failed message of the business key 'x' is chosen\n"));

  const Ended retried = failed({"retry", "--json"}, "o1\no2\nx\n");
  CHECK(retried.status == 1);
  CHECK(retried.out == "{\"retried\":1,\"torn\":1,\"unchanged\":2}\n");
  CHECK(retried.err.find("txinbox: line 2: 1 message is torn: ") != std::string::npos);
  CHECK(retried.err.find("txinbox: line 3: no failed message ") != std::string::npos);
  const Ended discarded = failed({"discard"}, "o2\no3\n");
  CHECK(discarded.status == 0);
  CHECK(discarded.out == "discarded 2 messages: later deliveries are acknowledged and do not run\n");
  CHECK(orders.db.number("select count(*) from txinbox_consumed_message where state = 'parked'") == 1);
}

TEST_CASE("a command that stops in the middle of a file prints the line, and what was done" *
          doctest::skip(!on_sqlite3())) {  // other databases would need another way to fail at one key
  const Consumed orders;
  orders.db.run(
      "create trigger keeps before delete on txinbox_consumed_message when old.business_key = 'o3' begin "
      "select raise(abort, 'kept'); end");
  const Ended ended = orders.on_keys({"forget"}, "o1\no2\no3\no4\n");
  CHECK(ended.status == 3);
  CHECK(ended.out == "forgotten 2 of 4 keys: the next delivery of each runs again\n");
  CHECK(ended.err.starts_with("txinbox: line 3: it stopped here. "));
  CHECK(orders.rows() == 2);

  const Ended one = run({"forget", "--consumer", "orders", "o3"}, orders.db.url());
  CHECK(one.status == 3);
  CHECK(one.err.starts_with("txinbox: SQLite error "));
}
