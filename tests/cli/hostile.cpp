// Malicious or broken input: no line is lost, nothing is injected, and each bad line is reported with its number.

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/orders.hpp"

using namespace txinbox::test;

namespace {

// gcc defines a macro for each sanitizer, and clang has a feature test.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TXINBOX_HAS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TXINBOX_HAS_SANITIZER 1
#endif
#endif

#ifdef TXINBOX_HAS_SANITIZER
constexpr bool memory_is_true = false;  // a sanitizer's own memory is counted, too
#else
constexpr bool memory_is_true = true;
#endif

constexpr std::size_t mega = 1'000'000;

std::string order(const std::string& no, const std::string& more = "") {
  return R"({"no":)" + no + R"(,"sku":"a","qty":1)" + more + "}\n";
}

// The input is written in pieces, so that this process stays small: its memory is counted as the command's.
void write_repeated(Command& command, std::string piece, std::size_t size) {
  while (piece.size() < mega) piece += piece;
  for (std::size_t written = 0; written < size; written += piece.size()) command.write(piece);
}

// A path whose file is removed at the end.
struct Path {
  std::string name =
      (std::filesystem::temp_directory_path() / ("txinbox-hostile-" + std::to_string(::getpid()))).string();
  ~Path() { std::filesystem::remove(name); }
};

}  // namespace

TEST_CASE("a line of 100 MB is skipped and reported, in bounded memory") {
  const Orders orders;
  Command command(Orders::arguments(), orders.db.url());
  command.write(Orders::line(1) + R"({"no":"big","sku":")");
  write_repeated(command, "x", 100 * mega);
  command.write("\",\"qty\":1}\n" + Orders::line(2));
  const Ended ended = command.wait();
  CHECK(ended.status == 1);
  CHECK(ended.err == "line 2: longer than 64 MiB\n");
  CHECK(counts(ended) == "consumed 2, already consumed 0, conflicts 0, parked 0, failed 1");
  if (memory_is_true) CHECK(ended.peak_memory < 256 * 1024);
}

TEST_CASE("a line of more than a million values is reported, in bounded memory") {
  for (const char* piece : {"1,", "\"\",", "[[]],"}) {
    CAPTURE(piece);
    const Orders orders;
    Command command(Orders::arguments(), orders.db.url());
    command.write(Orders::line(1) + R"({"no":"big","sku":"a","qty":1,"more":[)");
    write_repeated(command, piece, 20 * mega);
    command.write("1]}\n" + Orders::line(2));
    const Ended ended = command.wait();
    CHECK(ended.status == 1);
    CHECK(ended.err == "line 2: more than 1000000 values\n");
    CHECK(orders.orders() == 2);
    if (memory_is_true) CHECK(ended.peak_memory < 512 * 1024);
  }
}

TEST_CASE("each malicious line is reported, and the lines between them are consumed") {
  const Orders orders;
  std::string many;
  for (int i = 0; i < 100'000; ++i) many += ",\"m" + std::to_string(i) + "\":" + std::to_string(i);
  const std::string deep(mega, '[');
  const std::vector<std::pair<std::string, std::string>> lines{
      {Orders::line(1), ""},
      {order(R"("deep")", ",\"x\":" + deep), "arrays and objects nest deeper than 256"},
      {order(R"("deep")", ",\"x\":{\"y\":" + deep), "arrays and objects nest deeper than 256"},
      {order(R"("\ud800")"), "malformed JSON at byte 14"},
      {order(R"("\ude00\ud83d")"), "malformed JSON at byte 13"},
      {order("\"a\xED\xA0\x80\""), "invalid UTF-8 at byte 9"},
      {order("\"a\xC0\x80\""), "invalid UTF-8 at byte 9"},
      {order("\"a" + std::string(1, '\0') + "b\""), "malformed JSON at byte 9"},
      {order("\"c\x01\""), "malformed JSON at byte 9"},
      {order(R"("d")", R"(,"x":{"y":[{"z":1,"z":2}]})"), "malformed JSON: an object names one member twice"},
      {order(R"("e")", R"(,"\u0073ku":"b")"), "malformed JSON: an object names one member twice"},
      {order("1" + std::string(5000, '0')), "malformed JSON at byte 5007"},
      {order("NaN"), "malformed JSON at byte 7"},
      {order(R"("f"))"), "malformed JSON at byte 10"},
      {R"({"no":"g","sku":"a","qty":1} {"no":"h","sku":"a","qty":1})"
       "\n",
       "malformed JSON at byte 30"},
      {order(R"("many")", many), ""},
      {order("12345678901234567890123456789012345678901234567890"), ""},
      {order("-0"), ""},
      {order("1e400"), ""},
      {order(R"("\u001b[2J\u0007\r\n")"), ""},
      {order(R"("n")", R"(,"'); drop table t_order; --":1,"":{"\u0000":null})"), ""},
      {Orders::line(2), ""},
      {R"({"no":"last","sku":"a","qt)", "malformed JSON at byte 27"},
  };
  std::string input;
  std::string told;
  int good = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    input += lines[i].first;
    if (lines[i].second.empty()) {
      ++good;
    } else {
      told += "line " + std::to_string(i + 1) + ": " + lines[i].second + "\n";
    }
  }
  const Ended ended = orders.consume(input);
  CHECK(ended.status == 1);
  CHECK(ended.err == told);
  CHECK(orders.orders() == good);
  CHECK(orders.taken() == good);
  for (const char* no : {"0", "1e400", "12345678901234567890123456789012345678901234567890", "many", "n"}) {
    CHECK(orders.db.number("select count(*) from t_order where no = '" + std::string(no) + "'") == 1);
  }
  // The incomplete line may be delivered again as a whole.
  CHECK(counts(orders.consume(order(R"("last")"))) ==
        "consumed 1, already consumed 0, conflicts 0, parked 0, failed 0");
}

TEST_CASE("SQL in the key, the message id and the consumer's name stays text") {
  const Orders orders;
  const std::string evil = R"('); drop table t_order; -- \" ${x} {/sku} %s)";
  const std::string json = R"({"no":"'); drop table t_order; -- \\\" ${x} {/sku} %s","sku":"a","qty":1})";
  const std::string key = "k:" + evil + ":" + evil;
  auto consume = [&] {
    return run({"consume", "--consumer", evil, "--key", "k:{/no}:{/no}", "--message-id", "/no", "--sql",
                "insert into t_order values (:no, :sku, :qty)"},
               orders.db.url(), json);
  };
  CHECK(counts(consume()) == "consumed 1, already consumed 0, conflicts 0, parked 0, failed 0");
  CHECK(counts(consume()) == "consumed 0, already consumed 1, conflicts 0, parked 0, failed 0");
  CHECK(orders.orders() == 1);
  const Ended shown = run({"show", "--consumer", evil, key}, orders.db.url());
  CHECK(shown.status == 0);
  CHECK(shown.out.find(evil) != std::string::npos);
  CHECK(run({"status"}, orders.db.url()).out.find(evil) != std::string::npos);
  CHECK(run({"forget", "--consumer", evil, key}, orders.db.url()).status == 0);
  CHECK(orders.db.number("select count(*) from txinbox_consumed_message") == 0);
}

TEST_CASE("control characters in a key reach no terminal, and the key stays on one line") {
  const Orders orders;
  const std::string key = "a\x1b[2J\n{\"line\":9}\u009b";
  const Ended ended = run({"consume", "--json", "--consumer", "orders", "--key", "/no", "--sql",
                           "update t_inventory set stock = stock - :qty"},
                          orders.db.url(), order(R"("a\u001b[2J\n{\"line\":9}\u009b")"));
  CHECK(ended.status == 0);
  CHECK(ended.out.starts_with(R"({"line":1,"key":"a\u001b[2J\n{\"line\":9})"));
  const Ended shown = run({"show", "--consumer", "orders", key}, orders.db.url());
  CHECK(shown.status == 0);
  CHECK(shown.out.find('\x1b') == std::string::npos);
  CHECK(shown.out.find("\u009b") == std::string::npos);
}

TEST_CASE("a pointer into an array finds its element, and one through a scalar finds nothing") {
  const Orders orders;
  auto consume = [&](const std::string& key) {
    return run({"consume", "--consumer", "c", "--key", key, "--bind", "no=" + key, "--sql",
                "insert into t_order values (:no, 'a', 1)"},
               orders.db.url(), R"({"a":[{"b":["x","y"]}],"s":"text","n":7})");
  };
  CHECK(consume("/a/0/b/1").status == 0);
  CHECK(orders.db.text("select no from t_order") == "y");
  for (const char* key : {"/a/0/b/2", "/a/0/b/-", "/a/00/b/1", "/a/b", "/s/0", "/s/length", "/n/0", "/a/-1"}) {
    CHECK(consume(key).err == "line 1: key: there is no " + std::string(key) + "\n");
  }
  CHECK(consume("/a").err == "line 1: key: /a is an array\n");
  CHECK(orders.orders() == 1);
}

TEST_CASE("a FIFO is read until its writer has closed it") {
  const Orders orders;
  const Path path;
  REQUIRE(::mkfifo(path.name.c_str(), 0600) == 0);
  Command command(Orders::arguments({path.name, "--json"}), orders.db.url());
  {
    std::ofstream writer(path.name);
    writer << Orders::line(1) << std::flush;
    CHECK(command.printed(R"("line":1)"));
    writer << Orders::line(2) << R"({"no":"cut)";
  }
  const Ended ended = command.wait();
  CHECK(ended.status == 1);
  CHECK(ended.err == "line 3: malformed JSON at byte 11\n");
  CHECK(orders.orders() == 2);
}

TEST_CASE("a FILE that cannot be opened is status 2, and one that cannot be read status 1") {
  const Orders orders;
  const Path path;
  std::ofstream(path.name) << Orders::line(1);
  ::chmod(path.name.c_str(), 0);
  if (::geteuid() != 0) {  // root may read every file
    const Ended ended = orders.consume("", {path.name});
    CHECK(ended.status == 2);
    CHECK(ended.err == "txinbox: " + path.name + ": Permission denied\n");
  }
  const Ended ended = orders.consume("", {"/proc/self/mem"});  // the file does not have its first page
  CHECK(ended.status == 1);
  CHECK(ended.err == "line 1: reading failed: Input/output error\n");
  CHECK(orders.orders() == 0);
}

TEST_CASE("a line whose statement is too long for the server fails alone" * doctest::skip(!on_mysql())) {
  const Orders orders;
  orders.db.run("create table t_note (no varchar(9) primary key, note longtext)");
  const auto longest = static_cast<std::size_t>(orders.db.number("select @@max_allowed_packet"));
  const std::string sql = "insert into t_note values (:no, :note)";
  const std::size_t rest = std::string("insert into t_note values ('1', '')").size();
  const std::size_t most = longest - 1024 - rest;
  auto line = [](const char* no, std::size_t size, char c) {
    return std::string(R"({"no":")") + no + R"(","note":")" + std::string(size, c) + "\"}\n";
  };
  const Ended ended =
      run({"consume", "--consumer", "notes", "--key", "/no", "--sql", sql}, orders.db.url(),
          line("1", most, 'x') + line("2", most + 1, 'x') + line("3", longest / 2, '\'') + line("4", 1, 'x'));
  CHECK(ended.status == 1);
  const std::string server = "; the server takes " + std::to_string(longest) + " (max_allowed_packet)\n";
  auto refusal = [&](int number, std::size_t size) {
    return "line " + std::to_string(number) + ": statement 1 would have " + std::to_string(size) +
           " bytes with the line's values; the server takes " + std::to_string(longest) + " (max_allowed_packet)\n";
  };
  CHECK(ended.err == refusal(2, most + 1 + rest) + refusal(3, rest + 2 * (longest / 2)));
  CHECK(counts(ended) == "consumed 2, already consumed 0, conflicts 0, parked 0, failed 2");
  CHECK(orders.db.number("select count(*) from t_note where no in ('1', '4')") == 2);
}
