#include "torture/worker_process.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "torture/child.hpp"

namespace txinbox::torture {
namespace {

constexpr std::size_t longest_line = 1'000'000;

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  return ends;
}

}  // namespace

WorkerProcess::WorkerProcess(const WorkerOptions& options, const std::string& url)
    : number_(options.number), is_relay_(!options.sink.empty()) {
  const auto in = make_pipe();
  const auto out = make_pipe();
  input_ = in[1];
  output_ = out[0];
  lines_ = std::make_unique<cli::LineReader>(output_, -1, longest_line);
  pid_ = start(
      {.file = "/proc/self/exe",
       .words = {"txinbox-torture", "--worker", std::to_string(options.number), "--seed", std::to_string(options.seed),
                 "--shards", std::to_string(options.shards), "--threads", std::to_string(options.threads),
                 "--worker-subject", options.subject, "--worker-name", options.name, "--worker-sink", options.sink,
                 fmt::format("--worker-operator={}", options.is_operator)},
       .environment = {"TXINBOX_DB=" + url},
       .input = in[0],
       .output = out[1],
       .has_own_group = true});
  ::close(in[0]);
  ::close(out[1]);
}

WorkerProcess::~WorkerProcess() {
  if (pid_ > 0) {
    kill();
    reap();
  }
  close_input();
  ::close(output_);
}

void WorkerProcess::assign(Assignment assignment) {
  const std::string line = to_line(assignment);
  unanswered_.emplace(assignment.number, std::move(assignment));
  write(line);
}

void WorkerProcess::write(const std::string& line) {
  // A pipe has room for this line. If the worker has ended, the write fails, and the parent notices the end anyway.
  [[maybe_unused]] const auto written = ::write(input_, line.data(), line.size());
}

std::optional<std::string> WorkerProcess::receive_line() {
  std::string_view line;
  const auto status = ended_ ? cli::LineReader::Status::end : lines_->next(line, cli::LineReader::Wait::no);
  if (status == cli::LineReader::Status::line) return std::string(line);
  if (status != cli::LineReader::Status::none) ended_ = true;
  return std::nullopt;
}

std::vector<WorkerProcess::ReceivedReply> WorkerProcess::receive_replies() {
  std::vector<ReceivedReply> received;
  while (!ended_) {
    std::string_view line;
    const auto status = lines_->next(line, cli::LineReader::Wait::no);
    if (status == cli::LineReader::Status::none) break;
    if (status != cli::LineReader::Status::line) {
      ended_ = true;
      break;
    }
    auto reply = read_reply(line);
    if (!reply) continue;  // it was killed while it wrote
    if (reply->number == 0) {
      if (reply->fatal.empty()) {
        ready_ = true;
      } else {
        received.push_back({{}, std::move(*reply)});
      }
      continue;
    }
    auto assignment = unanswered_.extract(reply->number);
    if (!assignment || assignment.mapped().arrivals.size() != reply->answers.size()) continue;
    received.push_back({std::move(assignment.mapped()), std::move(*reply)});
  }
  return received;
}

void WorkerProcess::kill() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);  // never -1, which would kill all processes
}

void WorkerProcess::close_input() {
  if (input_ != -1) ::close(input_);
  input_ = -1;
}

int WorkerProcess::reap() {
  int status = 0;
  if (pid_ <= 0) return status;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

}  // namespace txinbox::torture
