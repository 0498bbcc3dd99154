#include "support/command.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;  // NOLINT(readability-redundant-declaration): not in every unistd.h

namespace txinbox::test {
namespace {

constexpr std::chrono::minutes patience{5};

void make_pipe(int (&ends)[2]) {
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
}

std::vector<std::string> environment(const std::string& db) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (!text.starts_with("TXINBOX_DB=")) variables.push_back(text);
  }
  if (!db.empty()) variables.push_back("TXINBOX_DB=" + db);
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (auto& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

std::string Ended::last_line() const {
  if (!out.ends_with('\n')) return out;
  const auto begin = out.size() < 2 ? std::string::npos : out.rfind('\n', out.size() - 2);
  const auto from = begin == std::string::npos ? 0 : begin + 1;
  return out.substr(from, out.size() - 1 - from);
}

Command::Command(const Arguments& arguments, const std::string& db) {
  const char* program = std::getenv("TXINBOX_COMMAND");
  if (program == nullptr) throw std::runtime_error("TXINBOX_COMMAND is not set: it names the command's file");
  std::signal(SIGPIPE, SIG_IGN);  // a write to a command that has ended must not end this process

  int in[2];
  int out[2];
  int err[2];
  make_pipe(in);
  make_pipe(out);
  make_pipe(err);
  make_pipe(hang_up_);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  sigaddset(&defaults, SIGINT);  // a shell makes a test in the background ignore this signal
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);

  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  auto variables = environment(db);
  const int error =
      ::posix_spawn(&pid_, program, &actions, &attributes, pointers(words).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  for (int fd : {in[0], out[1], err[1]}) ::close(fd);
  if (error != 0) throw std::system_error(error, std::generic_category(), program);
  input_ = in[1];
  output_ = out[0];
  errors_ = err[0];
  reads_output_ = std::thread([this] { collect(output_, ended_.out); });
  reads_errors_ = std::thread([this] { collect(errors_, ended_.err); });
}

Command::~Command() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    wait();
  }
}

void Command::collect(int fd, std::string& text) {
  std::array<char, 4096> buffer{};
  while (true) {
    std::array<pollfd, 2> waits{{{fd, POLLIN, 0}, {fd == output_ ? hang_up_[0] : -1, POLLIN, 0}}};
    if (::poll(waits.data(), waits.size(), -1) < 0) break;
    if (waits[1].revents != 0) break;
    const auto count = ::read(fd, buffer.data(), buffer.size());
    if (count <= 0) break;
    const std::lock_guard lock(mutex_);
    text.append(buffer.data(), static_cast<std::size_t>(count));
    changed_.notify_all();
  }
  ::close(fd);
}

void Command::write(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto count = ::write(input_, text.data() + at, text.size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;
    at += static_cast<std::size_t>(count);
  }
}

void Command::close_input() {
  if (input_ >= 0) ::close(input_);
  input_ = -1;
}

void Command::close_output() {
  [[maybe_unused]] const auto count = ::write(hang_up_[1], "x", 1);
  reads_output_.join();
}

void Command::signal(int number) const { ::kill(pid_, number); }

namespace {

bool is_in(const Ended& so_far, const std::string& text) {
  return so_far.out.find(text) != std::string::npos || so_far.err.find(text) != std::string::npos;
}

}  // namespace

bool Command::printed(const std::string& text) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [&] { return is_in(ended_, text); });
}

bool Command::has_printed(const std::string& text) {
  const std::lock_guard lock(mutex_);
  return is_in(ended_, text);
}

std::string Command::output() {
  const std::lock_guard lock(mutex_);
  return ended_.out;
}

long Command::memory() const {
  std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
  for (std::string word; status >> word;) {
    long kibibytes = 0;
    if (word == "VmRSS:" && status >> kibibytes) return kibibytes;
  }
  return -1;
}

bool Command::has_ended() const {
  siginfo_t ended{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid != 0;
}

Ended Command::wait() {
  close_input();
  const auto deadline = std::chrono::steady_clock::now() + patience;
  int status = 0;
  rusage used{};
  while (::wait4(pid_, &status, WNOHANG, &used) == 0) {
    if (std::chrono::steady_clock::now() > deadline) ::kill(pid_, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  pid_ = -1;
  if (reads_output_.joinable()) reads_output_.join();
  if (reads_errors_.joinable()) reads_errors_.join();
  for (int fd : hang_up_) ::close(fd);
  ended_.peak_memory = used.ru_maxrss;
  ended_.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return ended_;
}

Ended run(const Command::Arguments& arguments, const std::string& db, const std::string& input) {
  Command command(arguments, db);
  command.write(input);
  return command.wait();
}

}  // namespace txinbox::test
