#include "progress.hpp"

#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

#include "output.hpp"

namespace txinbox::cli {

std::string grouped(unsigned long long number) {
  std::string text = std::to_string(number);
  for (auto at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

Progress::Progress()
    : terminal_(::isatty(STDERR_FILENO) == 1), start_(std::chrono::steady_clock::now()), last_(start_) {}

bool Progress::is_due(std::chrono::duration<double>& since) {
  if (!terminal_) return false;
  const auto now = std::chrono::steady_clock::now();
  since = now - last_;
  if (since.count() < 0.1) return false;
  last_ = now;
  return true;
}

void Progress::update(std::size_t messages, std::size_t line) {
  std::chrono::duration<double> since{};
  if (!is_due(since)) return;
  const double rate = static_cast<double>(messages - last_messages_) / since.count();
  last_messages_ = messages;
  show(fmt::format("{} messages, {} a second, line {}", grouped(messages),
                   grouped(static_cast<unsigned long long>(rate)), grouped(line)));
}

void Progress::draw(std::string_view text) {
  std::chrono::duration<double> since{};
  if (is_due(since)) show(text);
}

void Progress::show(std::string_view text) {
  drawn_ = true;
  fmt::print(stderr, "\r{}\x1b[K", text);
  std::fflush(stderr);
}

void Progress::erase() {
  if (!drawn_) return;
  drawn_ = false;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
}

void Progress::message(std::string_view text) {
  erase();
  cli::message(text);
}

}  // namespace txinbox::cli
