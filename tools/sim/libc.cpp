// The functions of the C library with which a thread waits, and reads a clock or a random number. The program's own
// definitions win over those of the C library, also for calls from libstdc++, SQLite and SOCI. So the library's code
// runs in the simulator as it is.

#include <dlfcn.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>

#include "sim/threads.hpp"

namespace {

using txinbox::sim::epoch;
using txinbox::sim::SimTime;
using txinbox::sim::Threads;
using txinbox::sim::uptime;

timespec to_timespec(SimTime time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  return {.tv_sec = seconds.count(), .tv_nsec = (time - seconds).count()};
}
SimTime from_timespec(const timespec& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

/// How much the clock is ahead of the simulation's time, without its drift.
SimTime offset_of(clockid_t clock) {
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) {
    return epoch + Threads::instance()->current_process().clock_error;
  }
  return uptime;
}

/// The time that the clock of this process shows now.
SimTime to_clock(clockid_t clock, SimTime time) {
  return offset_of(clock) + Threads::instance()->current_process().shown_at(time);
}

/// The time at which the clock of this process shows this.
SimTime from_clock(clockid_t clock, SimTime shown) {
  return Threads::instance()->current_process().time_when_shown(shown - offset_of(clock));
}

template <class Function>
Function* original(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

// Of glibc's mutex: __lock is 1 while it is locked, __owner is the thread, __count is for recursive ones.

bool try_lock(pthread_mutex_t* mutex) noexcept {
  auto& data = mutex->__data;
  const int id = Threads::current_id();
  if (data.__lock == 0) {
    data.__lock = 1;
    data.__owner = id;
    data.__count = 1;
    return true;
  }
  if (data.__owner != id || (data.__kind & 3) != PTHREAD_MUTEX_RECURSIVE) return false;
  ++data.__count;
  return true;
}

/// Waits for the condition. Returns ETIMEDOUT at the time.
int wait_for(pthread_cond_t* condition, pthread_mutex_t* mutex, const SimTime* until) {
  auto& threads = *Threads::instance();
  const unsigned count = mutex->__data.__count;
  mutex->__data.__lock = 0;
  threads.wake_all(mutex);
  const bool woken = threads.wait_for_condition(condition, until);
  pthread_mutex_lock(mutex);
  mutex->__data.__count = count;
  return woken ? 0 : ETIMEDOUT;
}

struct Start {
  Threads::Thread& thread;
  void* (*body)(void*);
  void* argument;
};

/// Its destructor runs after those of the thread's thread-local objects.
pthread_key_t end_of_thread() {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    pthread_key_create(&made, [](void* thread) {
      if (Threads::instance() != nullptr) Threads::instance()->leave(*static_cast<Threads::Thread*>(thread));
    });
    return made;
  }();
  return key;
}

void* run_thread(void* argument) {
  const std::unique_ptr<Start> start(static_cast<Start*>(argument));
  Threads::instance()->enter(start->thread);
  pthread_setspecific(end_of_thread(), &start->thread);
  return start->body(start->argument);
}

}  // namespace

extern "C" {

int pthread_create(pthread_t* handle, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) noexcept {
  static auto* const real = original<decltype(pthread_create)>("pthread_create");
  auto* const threads = Threads::instance();
  if (threads == nullptr) return real(handle, attributes, body, argument);
  Threads::Thread& thread = threads->create_thread();
  auto start = std::make_unique<Start>(Start{thread, body, argument});
  const int result = real(handle, nullptr, run_thread, start.release());
  Threads::set_handle(thread, *handle);
  *handle = static_cast<pthread_t>(Threads::id_of(thread));
  return result;
}

/// The next thread that has the turn joins it.
int pthread_detach(pthread_t) noexcept { return 0; }

int pthread_join(pthread_t handle, void** result) {
  Threads::instance()->join(static_cast<int>(handle));
  if (result != nullptr) *result = nullptr;
  return 0;
}

pthread_t pthread_self() noexcept { return static_cast<pthread_t>(Threads::current_id()); }

int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept { return try_lock(mutex) ? 0 : EBUSY; }

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  while (!try_lock(mutex)) {
    if (Threads::instance() == nullptr) std::abort();  // no other thread runs
    if (mutex->__data.__owner == Threads::current_id() && (mutex->__data.__kind & 3) == PTHREAD_MUTEX_ERRORCHECK) {
      return EDEADLK;
    }
    Threads::instance()->wait(mutex);
  }
  return 0;
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  auto& data = mutex->__data;
  if (data.__count > 1) {
    --data.__count;
    return 0;
  }
  data.__lock = 0;
  data.__owner = 0;
  data.__count = 0;
  if (auto* const threads = Threads::instance(); threads != nullptr) {
    threads->wake_all(mutex);
    threads->maybe_switch();
  }
  return 0;
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) { return wait_for(condition, mutex, nullptr); }

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* time) {
  const SimTime until = from_clock(clock, from_timespec(*time));
  return wait_for(condition, mutex, &until);
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* time) {
  return pthread_cond_clockwait(condition, mutex, CLOCK_REALTIME, time);
}

int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  if (auto* const threads = Threads::instance(); threads != nullptr) {
    threads->wake_one(condition);
    threads->maybe_switch();
  }
  return 0;
}

int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  if (auto* const threads = Threads::instance(); threads != nullptr) {
    threads->wake_all(condition);
    threads->maybe_switch();
  }
  return 0;
}

int pthread_cond_destroy(pthread_cond_t*) noexcept { return 0; }

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  auto* const threads = Threads::instance();
  if (threads == nullptr) {
    static auto* const real = original<decltype(clock_gettime)>("clock_gettime");
    return real(clock, time);
  }
  *time = to_timespec(to_clock(clock, threads->read_clock()));
  return 0;
}

int gettimeofday(timeval* time, void*) noexcept {
  timespec precise{};
  clock_gettime(CLOCK_REALTIME, &precise);
  *time = {.tv_sec = precise.tv_sec, .tv_usec = precise.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* result) noexcept {
  timespec precise{};
  clock_gettime(CLOCK_REALTIME, &precise);
  if (result != nullptr) *result = precise.tv_sec;
  return precise.tv_sec;
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec*) {
  auto* const threads = Threads::instance();
  if (threads == nullptr) std::abort();  // nothing sleeps outside the simulation
  const SimTime wanted = from_timespec(*time);
  const bool is_absolute = (flags & TIMER_ABSTIME) != 0;
  threads->sleep_until(from_clock(clock, is_absolute ? wanted : to_clock(clock, threads->now()) + wanted));
  return 0;
}

int nanosleep(const timespec* time, timespec* rest) { return clock_nanosleep(CLOCK_MONOTONIC, 0, time, rest); }

int usleep(useconds_t time) {
  const timespec converted = to_timespec(std::chrono::microseconds(time));
  return nanosleep(&converted, nullptr);
}

int sched_yield() noexcept {
  if (auto* const threads = Threads::instance(); threads != nullptr) threads->sleep_for(std::chrono::microseconds(1));
  return 0;
}

ssize_t getrandom(void* buffer, size_t size, unsigned flags) {
  auto* const threads = Threads::instance();
  if (threads == nullptr) {
    static auto* const real = original<decltype(getrandom)>("getrandom");
    return real(buffer, size, flags);
  }
  auto* const bytes = static_cast<unsigned char*>(buffer);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>(threads->random()());
  return static_cast<ssize_t>(size);
}

int getentropy(void* buffer, size_t size) { return getrandom(buffer, size, 0) < 0 ? -1 : 0; }

}  // extern "C"

void txinbox::sim::join_real_thread(pthread_t handle) noexcept {
  static auto* const real = original<decltype(pthread_join)>("pthread_join");
  real(handle, nullptr);
}

std::random_device::result_type std::random_device::_M_getval() {
  result_type value = 0;
  (void)getrandom(&value, sizeof value, 0);
  return value;
}
