#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include "console/progress.hpp"

using namespace std::chrono_literals;

TEST_CASE("progress ignores errors of a terminal that was closed") {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(master >= 0);
  REQUIRE(::grantpt(master) == 0);
  REQUIRE(::unlockpt(master) == 0);
  std::string name(100, '\0');
  REQUIRE(::ptsname_r(master, name.data(), name.size()) == 0);
  const int terminal = ::open(name.c_str(), O_RDWR | O_NOCTTY);
  REQUIRE(terminal >= 0);
  const int standard_error = ::dup(STDERR_FILENO);
  ::dup2(terminal, STDERR_FILENO);
  {
    txinbox::cli::Progress progress;
    std::this_thread::sleep_for(150ms);  // it draws ten times a second at most
    progress.draw("one");
    ::close(master);
    std::this_thread::sleep_for(150ms);
    CHECK_NOTHROW(progress.draw("two"));
    CHECK_NOTHROW(progress.erase());
  }
  ::dup2(standard_error, STDERR_FILENO);
  ::close(standard_error);
  ::close(terminal);
}
