#pragma once

// The events in a world, for people, and the first problem.

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "sim/threads.hpp"

namespace txinbox::sim {

/// Something that is not done.
struct Waiting {
  std::string key;  ///< Of the first message that waits. Empty if it is not a message.
  std::string text;
};

class Story {
 public:
  /// A story that is not recorded costs nothing. The same seed tells it again.
  explicit Story(bool is_recorded) : is_recorded_(is_recorded) {}

  /// Adds a line. `key` is empty if the line concerns no message.
  template <class... Arguments>
  void tell(std::string_view key, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    if (is_recorded_) add(key, fmt::format(format, std::forward<Arguments>(arguments)...));
  }

  /// Something went wrong with the message. Only the first problem is kept.
  template <class... Arguments>
  void wrong(std::string_view key, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fail(key, fmt::format(format, std::forward<Arguments>(arguments)...));
  }

  /// The first problem. Empty if there was none.
  const std::string& problem() const noexcept { return problem_; }

  /// The last lines that concern the message of the problem, and the last ones that concern no message.
  std::string text() const;

 private:
  struct Line {
    SimTime time;
    std::string key;
    std::string text;
  };
  void add(std::string_view key, std::string text);
  void fail(std::string_view key, std::string_view what);

  const bool is_recorded_;
  std::string problem_;
  std::string key_of_problem_;
  std::deque<Line> lines_;
};

}  // namespace txinbox::sim
