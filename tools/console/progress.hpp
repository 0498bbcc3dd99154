#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace txinbox::cli {

/// A number with thousands separators: 12,345.
std::string grouped(unsigned long long number);

/// How much of the work is done. `all` is 0 if this is unknown.
struct Share {
  unsigned long long done = 0;
  unsigned long long all = 0;
};

/// ", 37 %, 1m20s left" at the speed so far. The time is missing until it can be estimated. Empty if `all` is 0.
std::string share_and_time_left(const Share& share, std::chrono::duration<double> elapsed);

/// One line on standard error that shows the progress of work. Nothing is drawn if standard error is not a terminal.
class Progress {
 public:
  Progress();

  /// Whether standard error is a terminal.
  static bool is_seen();

  ~Progress() { erase(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Draws the line, at most ten times a second.
  void update(std::size_t messages, std::size_t line, const Share& share);

  /// Draws another text, at most ten times a second.
  void draw(std::string_view text);

  /// Writes a message to standard error. It removes the progress line first.
  void message(std::string_view text);

  void erase();

  std::chrono::duration<double> elapsed() const { return std::chrono::steady_clock::now() - start_; }

 private:
  /// Whether it may draw now. `since`: the time since the last drawing.
  bool is_due(std::chrono::duration<double>& since);
  void show(std::string_view text);

  bool terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point last_;
  std::size_t last_messages_ = 0;
};

}  // namespace txinbox::cli
