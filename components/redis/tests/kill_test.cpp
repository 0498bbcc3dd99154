// Workers and the server are killed repeatedly. The server syncs each step to the disk before it answers.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include <doctest/doctest.h>

#include "journal.hpp"
#include "redis_server.hpp"
#include "support/counts.hpp"
#include "support/environment.hpp"

namespace txinbox::test {
namespace {

/// The workers. Each worker gets all keys.
class Workers {
 public:
  explicit Workers(int keys) : keys_(keys) {
    for (pid_t& each : workers_) each = start();
  }

  ~Workers() {
    for (const pid_t each : workers_) end(each);
    std::filesystem::remove(file_);
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void kill_one(std::size_t index) {
    pid_t& victim = workers_.at(index % workers_.size());
    end(victim);
    Journal(file_).add("killed", -1, victim);
    victim = start();
  }

  /// Whether all workers end by themselves and have acknowledged all keys.
  bool finish() {
    bool well = true;
    for (pid_t& each : workers_) {
      int status = 0;
      well = ::waitpid(std::exchange(each, -1), &status, 0) > 0 && status == 0 && well;
    }
    return well;
  }

  const std::string& file() const { return file_; }

 private:
  pid_t start() const {
    const std::string url = "redis://" + broker_address();
    const std::string keys = std::to_string(keys_);
    const std::string program = variable("TXINBOX_REDIS_WORKER");
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl(program.c_str(), program.c_str(), url.c_str(), file_.c_str(), keys.c_str(), nullptr);
      ::_exit(127);
    }
    return child;
  }

  static void end(pid_t worker) {
    if (worker <= 0) return;
    ::kill(worker, SIGKILL);
    ::waitpid(worker, nullptr, 0);
  }

  const int keys_;
  const std::string file_ =
      (std::filesystem::temp_directory_path() / ("txinbox-journal-" + std::to_string(::getpid()))).string();
  std::array<pid_t, 3> workers_{};
};

struct Verdict {
  std::set<int> acknowledged;
  int runs = 0;
  int runs_after_acknowledgement = 0;
  int overlaps = 0;
  int killed_inside = 0;  // the number of kills inside a handler
};

Verdict verdict_on(const std::string& file) {
  Verdict verdict;
  std::map<int, int> running;               // for each key, the process whose handler runs
  std::set<std::pair<int, int>> overtaken;  // keys and processes: an overlap, unless the process has lost its lease
  std::ifstream lines(file);
  std::string what;
  int key = 0;
  int process = 0;
  while (lines >> what >> key >> process) {
    const auto holder = running.find(key);
    if (what == "start") {
      ++verdict.runs;
      verdict.runs_after_acknowledgement += verdict.acknowledged.count(key) != 0 ? 1 : 0;
      if (holder != running.end()) overtaken.emplace(key, holder->second);
      running[key] = process;
    } else if (what == "killed") {
      verdict.killed_inside +=
          static_cast<int>(std::erase_if(running, [&](const auto& each) { return each.second == process; }));
    } else if (what == "acknowledged") {
      verdict.acknowledged.insert(key);
    } else {
      if (what == "late") overtaken.erase({key, process});
      if (holder != running.end() && holder->second == process) running.erase(holder);
    }
  }
  verdict.overlaps = static_cast<int>(overtaken.size());
  return verdict;
}

/// The number of keys that keeps the workers busy during this number of kills.
int keys_for(int times) { return 200 + 60 * times; }

void check(Workers& workers, RedisServer& server, int keys) {
  CHECK(workers.finish());
  const Verdict verdict = verdict_on(workers.file());
  count(keys, "keys");
  count(verdict.runs, "runs of handlers");
  count(verdict.killed_inside, "handlers whose worker was killed");
  CHECK(verdict.acknowledged.size() == static_cast<std::size_t>(keys));
  CHECK(verdict.runs >= keys);
  CHECK(verdict.runs_after_acknowledgement == 0);
  CHECK(verdict.overlaps == 0);
  CHECK(server.keys().size() == static_cast<std::size_t>(keys));
}

TEST_CASE("the verdict on a journal finds a run after an acknowledgement and an overlap") {
  const auto file = std::filesystem::temp_directory_path() / ("txinbox-verdict-" + std::to_string(::getpid()));
  {
    const Journal journal(file.string());
    for (const char* what : {"start", "end", "acknowledged", "start", "end"}) journal.add(what, 1, 10);
    journal.add("start", 2, 10);
    journal.add("start", 2, 11);
    for (const int process : {11, 10}) journal.add("end", 2, process);
    journal.add("start", 3, 10);
    journal.add("start", 3, 11);
    journal.add("late", 3, 10);
    journal.add("start", 4, 10);
    journal.add("killed", -1, 10);
    journal.add("start", 4, 11);
  }
  const Verdict verdict = verdict_on(file.string());
  std::filesystem::remove(file);
  CHECK(verdict.runs == 8);
  CHECK(verdict.runs_after_acknowledgement == 1);
  CHECK(verdict.overlaps == 1);
  CHECK(verdict.killed_inside == 1);
}

/// Kills at random moments while the workers deliver, and checks the journal that they have written.
void check_after_kills(const std::string& killed, const std::function<void(Workers&, int)>& kill) {
  RedisServer server;
  const int times = kills(6);
  const int keys = keys_for(times);
  Workers workers(keys);
  std::minstd_rand random(7);
  for (int i = 0; i < times; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100 + random() % 400));
    kill(workers, i);
  }
  count(times, killed + " killed");
  check(workers, server, keys);
}

TEST_CASE("workers that are killed lose nothing, never overlap, and repeat no acknowledged message") {
  check_after_kills("workers", [](Workers& workers, int i) { workers.kill_one(static_cast<std::size_t>(i)); });
}

TEST_CASE("a server that is killed loses nothing if it syncs each step to the disk") {
  check_after_kills("servers", [](Workers&, int) {
    RedisServer::kill();
    RedisServer::start();
  });
}

}  // namespace
}  // namespace txinbox::test
