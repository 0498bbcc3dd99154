#pragma once

// The threads of the simulator. They are real threads that run the library's real code, but one at a time. Their
// mutexes, condition variables, sleeps and clocks are those of libc.cpp, which asks this scheduler.

#include <pthread.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace txinbox::sim {

/// The time of the simulation. It begins at zero.
using SimTime = std::chrono::nanoseconds;

/// The time of the day at which the simulation begins: 2026-01-01 00:00 UTC.
inline constexpr SimTime epoch = std::chrono::seconds(1'767'225'600);

/// How long the machine has run at that time: the steady clocks show it.
inline constexpr SimTime uptime = std::chrono::hours(1);

/// A simulated process: some threads that end together if it is killed.
class Process {
 public:
  explicit Process(std::string name) : name_(std::move(name)) {}

  const std::string& name() const noexcept { return name_; }
  bool is_killed() const noexcept { return killed_; }

  /// How much the process's clock of the day is ahead of the right time.
  SimTime clock_error{0};

  /// By which share all clocks of the process are too fast. Less than zero: too slow.
  double drift = 0;

  /// The time of a clock of the process, without its offset.
  SimTime shown_at(SimTime time) const noexcept;

  /// The time at which a clock of the process shows this, without its offset. It shows it then, and not earlier.
  SimTime time_when_shown(SimTime shown) const noexcept;

 private:
  friend class Threads;
  std::string name_;
  bool killed_ = false;
  SimTime stopped_until_{0};
  int running_threads_ = 0;
};

/// Decides which thread runs. Everything that it decides follows from the seed, so the same seed gives the same run.
///
/// A thread gives up its turn when it waits: for a mutex, a condition, a thread, or a time. It may also lose its turn
/// after it has unlocked a mutex, notified a condition, or called `maybe_switch`: the seed decides. When no thread can
/// run, the time jumps to the earliest time for which a thread waits.
///
/// A killed process ends as with SIGKILL: its threads never run again, and nothing is destroyed. A thread that holds a
/// mutex of the C library or of SQLite must not vanish with it, so a kill takes effect where a thread waits for a
/// condition or a time, and at `kill_point`.
///
/// @threads the functions may be called by the thread that has the turn.
class Threads {
 public:
  struct Options {
    std::uint64_t seed = 0;
    double switch_rate = 0.05;  ///< How often a thread loses its turn where it may.

    /// No thread can run, and none waits for a time; or a thread reads the clock for ever, and waits for nothing. It
    /// must not return.
    std::function<void(std::string_view problem, const std::string& threads)> on_standstill = {};
  };

  /// Runs `first` as the first thread of a process "world". Returns when it has returned. The threads that are left are
  /// never run again.
  ///
  /// Errors: what `first` throws.
  static void run(const Options&, const std::function<void()>& first);

  /// The scheduler of this program. Null outside `run`.
  static Threads* instance() noexcept { return instance_; }

  SimTime now() const noexcept { return now_; }
  std::mt19937_64& random() noexcept { return random_; }

  /// Whether something happens this time. `rate` is its share of all times.
  bool happens(double rate);

  /// A random number from 0 to `count` - 1.
  std::size_t any_of(std::size_t count) { return random_() % count; }

  /// The process of the thread that has the turn.
  Process& current_process() const noexcept;
  std::shared_ptr<Process> current_process_ptr() const noexcept;

  /// Starts a process, whose first thread runs `body`.
  std::shared_ptr<Process> start_process(std::string name, std::function<void()> body);

  void kill(Process&) noexcept;

  /// The threads of the process do not run before this time, as if it had got SIGSTOP.
  void stop_until(Process&, SimTime) noexcept;
  SimTime stopped_until(const Process& process) const noexcept { return process.stopped_until_; }

  /// Whether all threads of the process have returned.
  bool has_ended(const Process& process) const noexcept { return process.running_threads_ == 0; }

  void sleep_until(SimTime);
  void sleep_for(SimTime time) { sleep_until(now_ + time); }

  /// A line for each thread: whether it can run, or what it waits for.
  std::string describe() const;

  /// Lets another thread run, sometimes.
  void maybe_switch();

  /// Does not return if the process of this thread was killed.
  void kill_point();

  // --- For libc.cpp. `what` is the address of a mutex, a condition or a thread.

  /// Adds some time. Without it, a loop that reads the clock would never end.
  SimTime read_clock();

  /// Waits until `wake` is called for the address.
  void wait(const void* what);

  /// The same, until this time. Returns false if the time has come. The thread can be killed while it waits.
  bool wait_for_condition(const void* what, const SimTime* until);

  void wake_all(const void* what) noexcept;
  void wake_one(const void* what) noexcept;

  class Thread;
  Thread& create_thread();
  static void set_handle(Thread&, pthread_t) noexcept;
  static int id_of(const Thread&) noexcept;
  void enter(Thread&);
  void leave(Thread&) noexcept;
  void join(int id);
  static int current_id() noexcept;  ///< 0 outside `run`.

 private:
  explicit Threads(const Options&);

  [[noreturn]] void vanish();
  void give_up_turn();
  void await_turn(Thread&);
  Thread& choose();
  bool can_run(const Thread&) const noexcept;
  void remove_threads(const std::function<bool(const Thread&)>& vanishes);
  void begin_wait(const void* what) noexcept;
  void wake(Thread&) noexcept;
  bool end_wait(Thread&) noexcept;
  std::uint32_t& waiting_for(const void* what) noexcept;

  static inline Threads* instance_ = nullptr;

  const Options options_;
  std::mt19937_64 random_;
  SimTime now_{0};
  std::shared_ptr<Process> new_process_;  ///< Of the next thread.
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<std::unique_ptr<Thread>> vanished_;  ///< Those of killed processes.
  std::vector<Thread*> ready_;                     ///< Of `choose`.
  std::array<std::uint32_t, 1024> waiting_{};      ///< Of `waiting_for`.
  int ids_ = 0;
  int clock_reads_ = 0;            ///< Since a thread has waited.
  std::optional<pthread_t> left_;  ///< The thread that has had the turn before, if it has ended.
};

/// The scheduler, within `Threads::run`.
inline Threads& threads() noexcept { return *Threads::instance(); }

/// Waits for the end of a thread of the operating system. In libc.cpp.
void join_real_thread(pthread_t) noexcept;

}  // namespace txinbox::sim
