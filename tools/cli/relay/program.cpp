#include "cli/relay/program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <thread>

extern char** environ;

namespace txinbox::cli {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(int error, const char* what) { throw std::system_error(error, std::generic_category(), what); }

struct Pipe {
  int read = -1, write = -1;

  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail(errno, "pipe");
    read = ends[0];
    write = ends[1];
  }
};

void close_end(int& end) {
  if (end >= 0) ::close(end);
  end = -1;
}

/// The environment of this process, without the variables of txinbox.
std::vector<char*> environment_of_program() {
  std::vector<char*> variables;
  for (char** each = environ; *each != nullptr; ++each) {
    if (!std::string_view(*each).starts_with("TXINBOX_")) variables.push_back(*each);
  }
  variables.push_back(nullptr);
  return variables;
}

void never_block(int end) { ::fcntl(end, F_SETFL, ::fcntl(end, F_GETFL) | O_NONBLOCK); }

}  // namespace

Program::Program(const std::string& command) {
  Pipe in, out;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.read, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.write, STDOUT_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);  // such as the sockets of the database
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP));
  std::string shell = "sh", option = "-c", text = command;
  const std::array<char*, 4> words{shell.data(), option.data(), text.data(), nullptr};
  const std::vector<char*> environment = environment_of_program();
  const int error = ::posix_spawn(&pid_, "/bin/sh", &actions, &attributes, words.data(), environment.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close_end(in.read);
  close_end(out.write);
  input_ = in.write;
  output_ = out.read;
  if (error != 0) {
    close_end(input_);
    close_end(output_);
    fail(error, "/bin/sh");
  }
  never_block(input_);
  never_block(output_);
}

Program::~Program() { end(std::chrono::seconds(5)); }

void Program::end(std::chrono::milliseconds grace) noexcept {
  if (pid_ < 0) return;
  close_end(input_);
  close_end(output_);
  const auto give_up = Clock::now() + grace;
  bool ended = false;
  while (!(ended = ::waitpid(pid_, nullptr, WNOHANG) != 0) && Clock::now() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (!ended) {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_ = -1;
}

void Program::take_lines(std::vector<std::string>& lines, std::size_t most) {
  std::size_t from = 0;
  while (lines.size() < most) {
    const std::size_t end = unread_.find('\n', from);
    if (end == std::string::npos) break;
    lines.push_back(unread_.substr(from, end - from));
    from = end + 1;
  }
  unread_.erase(0, from);
}

Program::Answer Program::exchange(std::string_view input, std::size_t count, std::chrono::milliseconds timeout) {
  const auto give_up = Clock::now() + timeout;
  Answer answer;
  take_lines(answer.lines, count);
  while (answer.lines.size() < count && answer.error.empty()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(give_up - Clock::now());
    answer.error = left.count() <= 0 ? "the program does not answer in time" : send_and_receive(input, left);
    take_lines(answer.lines, count);
  }
  if (answer.lines.size() == count) answer.error.clear();
  return answer;
}

/// Waits until the program reads or writes. Removes from `input` what the program has read. Returns why the program
/// cannot be used any more, or an empty text.
std::string Program::send_and_receive(std::string_view& input, std::chrono::milliseconds longest) {
  constexpr std::size_t longest_output = 64UL * 1024 * 1024;
  std::array<pollfd, 2> ends{pollfd{output_, POLLIN, 0}, pollfd{input.empty() ? -1 : input_, POLLOUT, 0}};
  if (::poll(ends.data(), ends.size(), static_cast<int>(longest.count())) < 0 && errno != EINTR) fail(errno, "poll");
  if ((ends[0].revents & (POLLIN | POLLHUP)) != 0) {
    std::array<char, 65'536> buffer{};
    const ssize_t got = ::read(output_, buffer.data(), buffer.size());
    if (got == 0) return "the program has ended before it answered each message";
    if (got > 0) unread_.append(buffer.data(), static_cast<std::size_t>(got));
    if (unread_.size() > longest_output) return "the program writes a line that is too long";
  }
  if ((ends[1].revents & (POLLOUT | POLLERR)) != 0) {
    const ssize_t written = ::write(input_, input.data(), input.size());
    if (written > 0) input.remove_prefix(static_cast<std::size_t>(written));
    // Its last answers may still be in the pipe. So go on reading until the end.
    if (written < 0 && errno != EAGAIN && errno != EINTR) input = {};
  }
  return {};
}

}  // namespace txinbox::cli
