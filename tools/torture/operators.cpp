#include "torture/operators.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>

#include <fmt/format.h>
#include <sys/wait.h>

#include "torture/child.hpp"

namespace txinbox::torture {
namespace {

// The handler is repaired this long after the last repair.
constexpr std::chrono::milliseconds repair_every{1'500};

// While there are so many dead letters, no keys are sent. A storm would last too long if it had to publish many of them
// again at its end.
constexpr std::size_t most_dead_letters = 500;

}  // namespace

Operators::Operators(std::size_t count, Broker& broker, DeadLetters& letters, Time now)
    : broker_(broker), letters_(letters), processes_(count), next_repair_(now + repair_every) {}

void Operators::start_missing(WorkerOptions& options, const std::string& url) {
  for (auto& each : processes_) {
    if (each && !each->has_ended()) continue;
    ++options.number;
    each = std::make_unique<WorkerProcess>(options, url);
  }
}

void Operators::add_waits(std::vector<pollfd>& waits) const {
  for (const auto& each : processes_) waits.push_back({each->fd(), POLLIN, 0});
}

void Operators::answer() {
  for (auto& each : processes_) {
    if (each && !each->has_ended()) answer(*each);
  }
}

void Operators::answer(WorkerProcess& each) {
  while (const auto line = each.receive_line()) {
    const auto question = read_question(*line);
    if (!question) continue;  // it was killed while it wrote
    if (!question->fatal.empty()) {
      fatal_ = question->fatal;
      continue;
    }
    const QuestionAnswer answer = answer_to(*question, each.number());
    if (kills_next_publisher_ && question->ask == Ask::publish && letters_.has_unacknowledged(each.number())) {
      kills_next_publisher_ = false;
      each.kill();
      continue;
    }
    each.write(to_line(answer));
  }
  if (each.has_ended()) remove_ended(each);
}

QuestionAnswer Operators::answer_to(const Question& question, unsigned holder) {
  QuestionAnswer answer;
  switch (question.ask) {
    case Ask::poll:
      answer.letters = letters_.take(holder, question.most);
      break;
    case Ask::publish:
      for (const RedriveMessage& message : question.messages) {
        const auto again = letters_.publish(holder, message);
        if (again) broker_.send_again(*again);
        answer.accepted.push_back(again.has_value());
      }
      break;
    case Ask::acknowledge:
      for (const RedriveMessage& message : question.messages) letters_.acknowledge(holder, message.id);
      break;
    case Ask::give_back:
      letters_.give_back(holder);
      break;
  }
  return answer;
}

void Operators::remove_ended(WorkerProcess& each) {
  const int status = each.reap();
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
    ++killed_;
    return letters_.lost(each.number());
  }
  letters_.give_back(each.number());
  if (fatal_.empty() && !(is_ending_ && status == 0)) {
    wrong_.push_back({fmt::format("operator {}", each.number()), "ended by itself", "runs on", describe_end(status)});
  }
}

void Operators::kill_one(Dice& dice) {
  if (dice.chance(5'000)) {
    kills_next_publisher_ = true;
  } else {
    processes_[dice.below(processes_.size())]->kill();
  }
}

bool Operators::has_room() const { return letters_.size() < most_dead_letters; }

void Operators::repair(Time now, bool is_storming, const std::optional<std::uint64_t>& keys) {
  const std::uint64_t sent = broker_.keys().size();
  if (is_none() || repaired_below_ == sent) return;
  const bool is_due = now >= next_repair_ && (!keys || !has_room());
  const bool has_settled_all = keys && sent >= *keys && broker_.has_settled_all_once();
  if (is_storming && !is_due && !has_settled_all) return;
  next_repair_ = now + repair_every;
  repaired_below_ = sent;
  ++repairs_;
}

void Operators::close_input() {
  is_ending_ = true;
  for (auto& each : processes_) {
    if (each) each->close_input();
  }
}

bool Operators::have_ended() const {
  return std::ranges::all_of(processes_, [](const auto& each) { return !each || each->has_ended(); });
}

}  // namespace txinbox::torture
