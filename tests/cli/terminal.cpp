// The output of the command on a terminal.

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/orders.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration): not in every unistd.h

using namespace txinbox::test;

namespace {

/// A terminal of that size. It is the command's standard output.
class Terminal {
 public:
  Terminal(unsigned short columns, unsigned short rows) : master_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    if (master_ < 0 || ::grantpt(master_) != 0 || ::unlockpt(master_) != 0) throw std::runtime_error("no terminal");
    slave_ = ::open(::ptsname(master_), O_RDWR | O_NOCTTY | O_CLOEXEC);
    const winsize size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    if (slave_ < 0 || ::ioctl(slave_, TIOCSWINSZ, &size) != 0) throw std::runtime_error("no terminal");
  }
  ~Terminal() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(master_);
    if (slave_ >= 0) ::close(slave_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void start(std::vector<std::string> words, const std::string& db) {
    words.insert(words.begin(), std::getenv("TXINBOX_COMMAND"));
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    ::setenv("TXINBOX_DB", db.c_str(), 1);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, slave_, STDOUT_FILENO);
    const int error = ::posix_spawn(&pid_, words[0].c_str(), &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    ::unsetenv("TXINBOX_DB");
    if (error != 0) throw std::runtime_error("the command does not start");
    ::close(slave_);
    slave_ = -1;
  }

  /// The output until the text appears, without carriage returns. If the text does not appear, the output until its
  /// end.
  std::string read(const std::string& until = "") {
    std::string text;
    std::array<char, 4096> buffer{};
    while (until.empty() || text.find(until) == std::string::npos) {
      pollfd wait{master_, POLLIN, 0};
      if (::poll(&wait, 1, 300'000) <= 0) break;
      const auto count = ::read(master_, buffer.data(), buffer.size());
      if (count <= 0) break;  // no process has the terminal open any more
      for (const char c : std::string(buffer.data(), static_cast<std::size_t>(count))) {
        if (c != '\r') text += c;
      }
    }
    return text;
  }

 private:
  int master_;
  int slave_ = -1;
  pid_t pid_ = -1;
};

std::string on_terminal(const std::vector<std::string>& words, const std::string& db, unsigned short columns) {
  Terminal terminal(columns, 24);
  terminal.start(words, db);
  return terminal.read();
}

std::size_t widest(const std::string& text) {
  std::size_t width = 0;
  std::size_t line = 0;
  for (const char c : text) {
    line = c == '\n' ? 0 : line + ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0);
    width = std::max(width, line);
  }
  return width;
}

void insert_failed(const Orders& orders, const std::string& key) {
  orders.db.run(
      "insert into txinbox_failed_message (consumer, business_key, attempts, first_error, last_error) values "
      "('orders', "
      "'" +
      key + "', 1, 'std::invalid_argument', 'std::invalid_argument')");
}

}  // namespace

TEST_CASE("a table is no wider than the terminal, and as wide as it is when it is piped") {
  const Orders orders;
  const std::string key = "a-very-long-business-key-" + std::string(100, 'x') + "-end";
  insert_failed(orders, key);
  const std::string list = on_terminal({"failed", "list"}, orders.db.url(), 80);
  CHECK(widest(list) <= 80);
  CHECK(list.find("…") != std::string::npos);
  CHECK(list.find("a-v") != std::string::npos);
  CHECK(list.find("-end") != std::string::npos);
  const std::string piped = run({"failed", "list"}, orders.db.url()).out;
  CHECK(piped.find(key) != std::string::npos);
  CHECK(piped.find("…") == std::string::npos);
  // Without a size, as on some serial lines.
  CHECK(on_terminal({"failed", "list"}, orders.db.url(), 0).find(key) != std::string::npos);
}

TEST_CASE("doctor wraps its texts on a terminal, and cuts nothing") {
  const TestDatabase db(TestDatabase::Tables::none);
  if (on_sqlite3()) db.run("create table other (a)");
  const std::string text = on_terminal({"doctor"}, db.url(), 100);
  CHECK(widest(text) <= 100);
  CHECK(text.find("…") == std::string::npos);
  CHECK(text.find("migrate`") != std::string::npos);
}

TEST_CASE("a help wraps its lines on a terminal between words, and leaves examples as they are") {
  const std::string whole = run({"consume", "--help"}, "").out;
  const std::string text = on_terminal({"consume", "--help"}, "", 60);
  CHECK(widest(text.substr(0, text.find("Examples:"))) <= 60);
  CHECK(widest(text.substr(text.find("Exit status:"))) <= 60);
  const auto without_spaces = [](std::string of) {
    std::erase_if(of, [](char c) { return c == ' ' || c == '\r' || c == '\n'; });
    return of;
  };
  CHECK(without_spaces(text) == without_spaces(whole));
  CHECK(text.find("environment variable\n") != std::string::npos);
  const std::string example = "--sql 'insert into t_order(no, sku) values (:no, :sku)' orders.jsonl";
  CHECK(text.find(example) != std::string::npos);
  CHECK(on_terminal({"consume", "--help"}, "", 0).find(example) != std::string::npos);
}

TEST_CASE("status folds its tables on a terminal that is not wide enough, and shows each number") {
  const Orders orders;
  orders.consume(Orders::line(1) + Orders::line(2));
  const std::string text = on_terminal({"status"}, orders.db.url(), 60);
  const auto tables = text.find("\n\n");
  CHECK(widest(text.substr(tables)) <= 60);
  for (const char* column : {"CONSUMED", "EXPIRED", "DISCARDED", "PURGED (UTC)", "RETENTION"}) {
    CHECK(text.find(column) != std::string::npos);
  }
  CHECK(text.find("…") == std::string::npos);
}

TEST_CASE(
    "status --watch shows as many consumers as the terminal has room for, the most active ones, and counts them") {
  const Orders orders;
  orders.consume(Orders::line(1));
  for (int i = 10; i < 40; ++i) {
    orders.db.run("insert into txinbox_consumer (consumer, duplicates) values ('c" + std::to_string(i) + "', 1)");
  }
  Terminal terminal(120, 24);
  terminal.start({"status", "--watch"}, orders.db.url());
  const std::string text = terminal.read("more consumers");
  CHECK(text.find("c10") != std::string::npos);
  CHECK(text.find("c39") == std::string::npos);
  CHECK(text.find("orders") != std::string::npos);  // the last one by name
  CHECK(text.find("and 23 more consumers") != std::string::npos);
  const std::string block = text.substr(0, text.find("more consumers"));  // a slow reader also gets the next block
  CHECK(std::count(block.begin(), block.end(), '\n') < 24);
  Terminal one(120, 24);
  one.start({"status", "--watch", "--consumer", "c39"}, orders.db.url());
  const std::string other = one.read("PURGED (UTC)");
  CHECK(other.find("c39") != std::string::npos);
  CHECK(other.find("more consumers") == std::string::npos);
}
