#include "sim/threads.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace txinbox::sim {

/// A thread that has the turn, can get it, or waits.
class Threads::Thread {
 public:
  enum class State { can_run, waits, sleeps };

  Thread(int its_id, std::shared_ptr<Process> its_process) : id(its_id), process(std::move(its_process)) {}

  void give_turn() noexcept {
    turn_.store(1, std::memory_order_release);
    ::syscall(SYS_futex, &turn_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
  void await_turn() noexcept {
    while (turn_.exchange(0, std::memory_order_acquire) == 0) {
      ::syscall(SYS_futex, &turn_, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
    }
  }

  const int id;
  const std::shared_ptr<Process> process;
  pthread_t handle{};
  State state = State::can_run;
  const void* waits_for = nullptr;
  std::optional<SimTime> wakes_at = {};
  bool is_at_kill_point = false;  ///< It has waited for a condition or a time, and has not run since.

 private:
  std::atomic<std::uint32_t> turn_ = 0;
};

namespace {

thread_local Threads::Thread* self = nullptr;

}  // namespace

SimTime Process::shown_at(SimTime time) const noexcept {
  return time + SimTime(static_cast<SimTime::rep>(static_cast<double>(time.count()) * drift));
}

SimTime Process::time_when_shown(SimTime shown) const noexcept {
  if (drift == 0) return shown;
  return SimTime(static_cast<SimTime::rep>(std::ceil(static_cast<double>(shown.count()) / (1 + drift))));
}

Threads::Threads(const Options& options) : options_(options), random_(options.seed) {}

void Threads::run(const Options& options, const std::function<void()>& first) {
  if (instance_ != nullptr) throw std::logic_error("the simulator runs already");
  instance_ = new Threads(options);  // NOLINT: the threads that are left still refer to it
  const std::shared_ptr<void> ends(nullptr, [](void*) { instance_ = nullptr; });
  instance_->new_process_ = std::make_shared<Process>("world");
  self = &instance_->create_thread();
  first();
}

bool Threads::happens(double rate) { return rate > 0 && std::uniform_real_distribution<>()(random_) < rate; }

Process& Threads::current_process() const noexcept { return *self->process; }
std::shared_ptr<Process> Threads::current_process_ptr() const noexcept { return self->process; }
int Threads::current_id() noexcept { return self == nullptr ? 0 : self->id; }

std::shared_ptr<Process> Threads::start_process(std::string name, std::function<void()> body) {
  auto process = std::make_shared<Process>(std::move(name));
  new_process_ = process;
  std::thread(std::move(body)).detach();
  return process;
}

Threads::Thread& Threads::create_thread() {
  auto process = new_process_ ? std::exchange(new_process_, nullptr) : self->process;
  ++process->running_threads_;
  return *threads_.emplace_back(std::make_unique<Thread>(++ids_, std::move(process)));
}

int Threads::id_of(const Thread& thread) noexcept { return thread.id; }
void Threads::set_handle(Thread& thread, pthread_t handle) noexcept { thread.handle = handle; }

/// The new thread waits for its first turn.
void Threads::enter(Thread& thread) {
  self = &thread;
  await_turn(thread);
}

/// The end of a thread frees memory. So the next thread waits for it: the addresses that it gets are the same each
/// time.
void Threads::await_turn(Thread& thread) {
  thread.await_turn();
  if (left_) join_real_thread(*std::exchange(left_, std::nullopt));
}

void Threads::join(int id) {
  const auto is_it = [id](const auto& each) { return each->id == id; };
  if (const auto found = std::ranges::find_if(threads_, is_it); found != threads_.end()) wait(found->get());
}

/// The thread has ended, and its thread-local objects are destroyed.
void Threads::leave(Thread& ended) noexcept {
  --ended.process->running_threads_;
  wake_all(&ended);
  left_ = ended.handle;
  std::erase_if(threads_, [&](const auto& each) { return each.get() == &ended; });
  choose().give_turn();
}

void Threads::kill(Process& process) noexcept {
  process.killed_ = true;
  remove_threads([&](const Thread& each) { return each.process.get() == &process && each.is_at_kill_point; });
}

/// These threads never get the turn again. Their objects stay, because the real threads wait in them.
void Threads::remove_threads(const std::function<bool(const Thread&)>& vanishes) {
  const auto first =
      std::stable_partition(threads_.begin(), threads_.end(), [&](const auto& each) { return !vanishes(*each); });
  for (auto each = first; each != threads_.end(); ++each) (void)end_wait(**each);
  std::move(first, threads_.end(), std::back_inserter(vanished_));
  threads_.erase(first, threads_.end());
}

void Threads::stop_until(Process& process, SimTime time) noexcept { process.stopped_until_ = time; }

void Threads::kill_point() {
  if (self->process->killed_) vanish();
}

void Threads::vanish() {
  remove_threads([](const Thread& each) { return &each == self; });
  while (true) give_up_turn();
}

void Threads::sleep_until(SimTime time) {
  if (time <= now_) return maybe_switch();
  self->state = Thread::State::sleeps;
  self->wakes_at = time;
  self->is_at_kill_point = true;
  kill_point();
  give_up_turn();
  self->is_at_kill_point = false;
}

void Threads::maybe_switch() {
  if (std::uniform_real_distribution<>()(random_) < options_.switch_rate) give_up_turn();
}

/// How many threads wait for addresses with the same hash. Nearly all addresses of `wake_all` are those of mutexes for
/// which no thread waits.
std::uint32_t& Threads::waiting_for(const void* what) noexcept {
  return waiting_[(reinterpret_cast<std::uintptr_t>(what) >> 4) % waiting_.size()];
}

void Threads::begin_wait(const void* what) noexcept {
  self->state = Thread::State::waits;
  self->waits_for = what;
  ++waiting_for(what);
}

/// Returns false if the thread waited for nothing.
bool Threads::end_wait(Thread& thread) noexcept {
  const void* const what = std::exchange(thread.waits_for, nullptr);
  if (what != nullptr) --waiting_for(what);
  return what != nullptr;
}

void Threads::wake(Thread& thread) noexcept {
  thread.state = Thread::State::can_run;
  (void)end_wait(thread);
  thread.wakes_at.reset();
}

void Threads::wait(const void* what) {
  begin_wait(what);
  give_up_turn();
}

bool Threads::wait_for_condition(const void* what, const SimTime* until) {
  begin_wait(what);
  if (until != nullptr) self->wakes_at = *until;
  self->is_at_kill_point = true;
  kill_point();
  give_up_turn();
  self->is_at_kill_point = false;
  return !end_wait(*self);  // `wake` has ended the wait
}

void Threads::wake_all(const void* what) noexcept {
  if (waiting_for(what) == 0) return;
  for (const auto& each : threads_) {
    if (each->waits_for == what && each->state != Thread::State::can_run) wake(*each);
  }
}

void Threads::wake_one(const void* what) noexcept {
  if (waiting_for(what) == 0) return;
  std::vector<Thread*> waiting;
  for (const auto& each : threads_) {
    if (each->waits_for == what && each->state != Thread::State::can_run) waiting.push_back(each.get());
  }
  if (!waiting.empty()) wake(*waiting[random_() % waiting.size()]);
}

bool Threads::can_run(const Thread& thread) const noexcept {
  return thread.state == Thread::State::can_run && thread.process->stopped_until_ <= now_;
}

/// Chooses the next thread. It moves the time on if no thread can run now.
Threads::Thread& Threads::choose() {
  while (true) {
    ready_.clear();
    std::optional<SimTime> earliest;
    const auto wait_until = [&](SimTime time) { earliest = std::min(earliest.value_or(time), time); };
    for (const auto& each : threads_) {
      if (each->wakes_at && *each->wakes_at <= now_) {  // `waits_for` stays: it was not woken
        each->state = Thread::State::can_run;
        each->wakes_at.reset();
      }
      if (can_run(*each)) {
        ready_.push_back(each.get());
      } else if (each->state == Thread::State::can_run) {
        wait_until(each->process->stopped_until_);
      } else if (each->wakes_at) {
        wait_until(*each->wakes_at);
      }
    }
    if (!ready_.empty()) return *ready_[random_() % ready_.size()];
    if (!earliest) {
      options_.on_standstill("no thread can run any more", describe());
      std::abort();
    }
    now_ = *earliest;
  }
}

SimTime Threads::read_clock() {
  constexpr int most = 5'000'000;
  if (++clock_reads_ > most) {
    options_.on_standstill(fmt::format("a thread of {} never waits", current_process().name()), describe());
    std::abort();
  }
  return now_ += std::chrono::nanoseconds(50);
}

void Threads::give_up_turn() {
  clock_reads_ = 0;
  Thread& next = choose();
  if (&next != self) {
    next.give_turn();
    await_turn(*self);
  }
}

std::string Threads::describe() const {
  std::string text;
  for (const auto& each : threads_) {
    text += fmt::format("thread {} of {} ", each->id, each->process->name());
    if (each->state == Thread::State::can_run) text += "can run";
    if (each->state == Thread::State::waits) text += fmt::format("waits for {}", each->waits_for);
    if (each->wakes_at)
      text += fmt::format(" until {} ms", std::chrono::floor<std::chrono::milliseconds>(*each->wakes_at).count());
    text += '\n';
  }
  return text;
}

}  // namespace txinbox::sim
