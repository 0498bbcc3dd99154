#include "torture/outbox_sink.hpp"

#include <cerrno>
#include <charconv>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace txinbox::torture {
namespace {

/// Takes the text up to the separator, or the whole text.
std::string_view take_part(std::string_view& text, char separator) {
  const auto end = text.find(separator);
  const auto part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return part;
}

template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string to_text(const OutboxPayload& payload) {
  return fmt::format("{} {} {}", payload.run, payload.number, payload.change);
}

std::optional<OutboxPayload> read_payload(std::string_view text) {
  OutboxPayload payload{.run = std::string(take_part(text, ' '))};
  if (payload.run.empty() || !read_number(take_part(text, ' '), payload.number)) return std::nullopt;
  if (!read_number(text, payload.change)) return std::nullopt;
  return payload;
}

Sink::Sink(const std::string& file) : file_(::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)) {
  if (file_ == -1) throw std::system_error(errno, std::generic_category(), "open");
}

Sink::~Sink() { ::close(file_); }

void Sink::take(const OutgoingMessage& message) {
  const std::string line = fmt::format("{}\t{}\t{}\n", message.id, message.key, message.payload);
  const auto written = ::write(file_, line.data(), line.size());
  if (written != static_cast<ssize_t>(line.size())) throw std::system_error(errno, std::generic_category(), "write");
}

std::vector<Published> read_sink(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("the file of the sink cannot be read: " + file);
  std::vector<Published> all;
  for (std::string text; std::getline(in, text);) {
    std::string_view line = text;
    const auto id = take_part(line, '\t');
    const auto key = take_part(line, '\t');
    const auto payload = read_payload(line);
    if (id.empty() || !payload) throw std::runtime_error("the file of the sink has an invalid line: " + file);
    all.push_back({.id = std::string(id), .key = std::string(key), .payload = *payload});
  }
  return all;
}

}  // namespace txinbox::torture
