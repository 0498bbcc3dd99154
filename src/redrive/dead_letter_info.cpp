#include "redrive/dead_letter_info.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

/// The last header of this name: a dead letter of an older dead letter can have several.
std::string_view header(const Incoming& incoming, std::string_view name) {
  std::string_view value;
  for (const IncomingHeader& each : incoming.headers) {
    if (each.name == name) value = each.value;
  }
  return value;
}

/// 0 if the text is no number: anybody can write a header.
int count_of(std::string_view text) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  return error == std::errc() && end == text.data() + text.size() ? std::max(count, 0) : 0;
}

/// Empty if the function finds no key.
std::string key_of(const Incoming& incoming, const MessageOf& message_of) {
  try {
    return message_of(incoming).business_key;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {
    return {};
  }
}

}  // namespace

DeadLetterInfo::DeadLetterInfo(const Incoming& incoming, const RedriveOptions& options)
    : reason(header(incoming, dead_letter_header::reason)),
      error_class(header(incoming, dead_letter_header::error_class)),
      consumer(header(incoming, dead_letter_header::consumer)),
      business_key(header(incoming, dead_letter_header::key)),
      destination(options.to),
      redrives(count_of(header(incoming, dead_letter_header::redrives))),
      last_redrive(header(incoming, dead_letter_header::redrive)),
      dropped_headers(header(incoming, dead_letter_header::dropped_headers)) {
  is_ours = !consumer.empty();
  if (!is_ours) consumer = options.consumer;
  if (!is_ours && options.message_of) business_key = key_of(incoming, options.message_of);
  if (destination.empty()) destination = header(incoming, dead_letter_header::source);
}

std::string DeadLetterInfo::why_left(const RedriveOptions& options, std::string_view redrive) const {
  const auto is_other = [](std::string_view wanted, std::string_view actual) {
    return !wanted.empty() && wanted != actual;
  };
  if (is_other(options.consumer, consumer)) return "it is of another consumer";
  if (is_other(options.reason, reason)) return "it has another reason";
  if (is_other(options.error_class, error_class)) return "it has another error class";
  if (consumer.empty()) return "it does not say which consumer could not consume it; name the consumer";
  if (destination.empty()) return "it does not say where it came from; name the topic or queue to publish to";
  if (!is_ours && business_key.empty()) return "it does not say its key; say where the key is";
  if (reason == "conflict" && options.reason.empty()) {
    return "its key is known with another content; ask for the reason conflict to publish it";
  }
  if (!dropped_headers.empty()) return "its own headers are missing, because they did not fit into the dead letter";
  if (last_redrive == redrive) return "it was published again, and failed again";
  if (redrives >= options.max_redrives) return "it was published again too often";
  return {};
}

std::vector<std::pair<std::string_view, std::string>> DeadLetterInfo::headers(std::string_view redrive) const {
  const int times = std::min(redrives, std::numeric_limits<int>::max() - 1) + 1;
  return {{dead_letter_header::redrives, std::to_string(times)}, {dead_letter_header::redrive, std::string(redrive)}};
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
