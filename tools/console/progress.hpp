#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace txinbox::cli {

/// A number with commas: 12,345.
std::string grouped(unsigned long long number);

/// How much of the work is done; `all` is 0 where that is not known.
struct Share {
  unsigned long long done = 0;
  unsigned long long all = 0;
};

/// ", 37 %, 1m20s left", at the speed so far; the time only once it can be guessed. Empty where `all` is 0.
std::string share_and_time_left(const Share& share, std::chrono::duration<double> elapsed);

/// One line on standard error that is drawn again as work goes on; nothing when that is no terminal.
class Progress {
 public:
  Progress();

  /// Whether standard error is a terminal, where it is drawn.
  static bool is_seen();

  ~Progress() { erase(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Draws, at most ten times a second.
  void update(std::size_t messages, std::size_t line, const Share& share);

  /// Draws a text of one's own, as often.
  void draw(std::string_view text);

  /// A message on standard error, which the progress line makes room for.
  void message(std::string_view text);

  void erase();

  std::chrono::duration<double> elapsed() const { return std::chrono::steady_clock::now() - start_; }

 private:
  /// Whether it may be drawn now; `since`: the time since it was drawn last.
  bool is_due(std::chrono::duration<double>& since);
  void show(std::string_view text);

  bool terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point last_;
  std::size_t last_messages_ = 0;
};

}  // namespace txinbox::cli
