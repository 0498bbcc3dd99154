#include <unistd.h>

#include <fmt/format.h>

#include "measure.hpp"

namespace txinbox::bench {
namespace {

bool on_terminal() {
  static const bool terminal = ::isatty(STDERR_FILENO) == 1;
  return terminal;
}

}  // namespace

Progress::Progress(std::string what, int steps) : what_(std::move(what)), steps_(steps) {}

Progress::~Progress() {
  if (on_terminal()) fmt::print(stderr, "\r\033[K");
}

void Progress::step() {
  ++done_;
  if (on_terminal()) fmt::print(stderr, "\r\033[K{}: {} of {}", what_, done_, steps_);
}

}  // namespace txinbox::bench
