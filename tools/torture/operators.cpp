#include "torture/operators.hpp"

#include <algorithm>
#include <csignal>

#include <fmt/format.h>
#include <sys/wait.h>

#include "torture/child.hpp"

namespace txinbox::torture {

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
