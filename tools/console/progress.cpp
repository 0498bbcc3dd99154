#include "console/progress.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <unistd.h>

#include "console/duration.hpp"
#include "console/output.hpp"

namespace txinbox::cli {

std::string grouped(unsigned long long number) {
  std::string text = std::to_string(number);
  for (auto at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

std::string share_and_time_left(const Share& share, std::chrono::duration<double> elapsed) {
  if (share.all == 0) return {};
  const auto done = static_cast<double>(std::min(share.done, share.all));
  const auto all = static_cast<double>(share.all);
  std::string text = fmt::format(", {} %", static_cast<int>(100 * done / all));
  constexpr std::chrono::seconds long_enough{1};
  if (elapsed < long_enough || done <= 0) return text;
  const auto left = std::chrono::ceil<std::chrono::seconds>(elapsed * ((all - done) / done));
  return text + fmt::format(", {} left", left.count() == 0 ? "0s" : format_duration(left));
}

bool Progress::is_seen() { return ::isatty(STDERR_FILENO) == 1; }

Progress::Progress() : terminal_(is_seen()), start_(std::chrono::steady_clock::now()), last_(start_) {}

bool Progress::is_due(std::chrono::duration<double>& since) {
  if (!terminal_) return false;
  const auto now = std::chrono::steady_clock::now();
  since = now - last_;
  if (since.count() < 0.1) return false;
  last_ = now;
  return true;
}

void Progress::update(std::size_t messages, std::size_t line, const Share& share) {
  std::chrono::duration<double> since{};
  if (!is_due(since)) return;
  const double rate = static_cast<double>(messages - last_messages_) / since.count();
  last_messages_ = messages;
  show(fmt::format("{} messages, {} a second, line {}{}", grouped(messages),
                   grouped(static_cast<unsigned long long>(rate)), grouped(line),
                   share_and_time_left(share, elapsed())));
}

void Progress::draw(std::string_view text) {
  std::chrono::duration<double> since{};
  if (is_due(since)) show(text);
}

void Progress::show(std::string_view text) {
  drawn_ = true;
  write_all(STDERR_FILENO, fmt::format("\r{}\x1b[K", text));  // an error does not matter
}

void Progress::erase() {
  if (!drawn_) return;
  drawn_ = false;
  write_all(STDERR_FILENO, "\r\x1b[K");
}

void Progress::message(std::string_view text) {
  erase();
  cli::message(text);
}

}  // namespace txinbox::cli
