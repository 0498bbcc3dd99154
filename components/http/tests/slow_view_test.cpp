// A view that is read in the background.

#include "page/slow_view.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "support/eventually.hpp"
#include "support/test_database.hpp"

namespace txinbox::test {
namespace {

using http::SlowView;
using namespace std::chrono_literals;

/// Each reading returns its number, and waits before its end while the gate is closed.
class Readings {
 public:
  SlowView::Read read() {
    return [this](Connection&) -> nlohmann::ordered_json {
      std::unique_lock lock(mutex_);
      const int number = ++begun_;
      changed_.notify_all();
      changed_.wait(lock, [this] { return is_open_; });
      if (number == failing_) throw std::runtime_error("the reading fails");
      return number;
    };
  }

  void set_open(bool is_open) {
    const std::lock_guard lock(mutex_);
    is_open_ = is_open;
    changed_.notify_all();
  }

  void wait_until_begun(int number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_ >= number; });
  }

  void fail_at(int number) {
    const std::lock_guard lock(mutex_);
    failing_ = number;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int begun_ = 0;
  int failing_ = 0;
  bool is_open_ = true;
};

bool becomes(SlowView& view, int number) {
  return eventually([&] { return view.get().value == number; });
}

TEST_CASE("a view is read again after its pause, and at once after a change") {
  const TestDatabase db;
  Pool pool = db.pool(1);
  Readings readings;
  SlowView view(pool, {.least_pause = 1h}, readings.read());
  REQUIRE(becomes(view, 1));
  CHECK(view.get().value == 1);
  view.expire();
  CHECK(becomes(view, 2));
  CHECK(view.get().value == 2);
}

TEST_CASE("a change during a reading leads to another reading") {
  const TestDatabase db;
  Pool pool = db.pool(1);
  Readings readings;
  SlowView view(pool, {.least_pause = 1h}, readings.read());
  readings.set_open(false);
  CHECK(view.get().value.is_null());
  readings.wait_until_begun(1);
  view.expire();
  CHECK(view.get().value.is_null());  // no second reading beside it
  readings.set_open(true);
  CHECK(becomes(view, 2));
}

TEST_CASE("a view that cannot be read keeps its latest result and says why") {
  const TestDatabase db;
  Pool pool = db.pool(1);
  Readings readings;
  readings.fail_at(2);
  SlowView view(pool, {.least_pause = 1h}, readings.read());
  REQUIRE(becomes(view, 1));
  view.expire();
  CHECK(eventually([&] { return !view.get().error.empty(); }));
  const SlowView::Result result = view.get();
  CHECK(result.value == 1);
  CHECK(result.error.find("the reading fails") != std::string::npos);
}

}  // namespace
}  // namespace txinbox::test
