#include "dead_letter_producer.hpp"

#include <cstddef>
#include <vector>

#include "kafka_error.hpp"
#include "record.hpp"
#include "shared/dead_letter_headers.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace kafka {
namespace {

/// Our headers, and those of the message. Without those, a header says how many are missing.
Headers headers_of(const DeadLetter& letter, CopiedHeaders copied) {
  const Incoming& incoming = *letter.incoming;
  const auto ours = component::dead_letter_headers(letter, record_of(incoming).topic());
  Headers headers(rd_kafka_headers_new(incoming.headers.size() + ours.size()));
  std::size_t dropped = 0;
  for (const IncomingHeader& header : incoming.headers) {
    if (dead_letter_header::is_about_failure(header.name)) continue;
    if (copied == CopiedHeaders::all) {
      add_header(headers, header.name, header.value);
    } else {
      ++dropped;
    }
  }
  for (const auto& [name, value] : ours) add_header(headers, name, value);
  if (dropped > 0) add_header(headers, dead_letter_header::dropped_headers, std::to_string(dropped));
  return headers;
}

}  // namespace

rd_kafka_resp_err_t DeadLetterProducer::publish(std::span<DeadLetter* const> letters) {
  const auto give_up = producer_.latest();
  auto codes = publish(letters, CopiedHeaders::all, give_up);
  std::vector<std::size_t> too_large;
  std::vector<DeadLetter*> smaller;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    if (!is_too_large(codes[i]) || letters[i]->incoming->headers.empty()) continue;
    too_large.push_back(i);
    smaller.push_back(letters[i]);
  }
  if (!smaller.empty()) {
    const auto second_codes = publish(smaller, CopiedHeaders::none, give_up);
    for (std::size_t i = 0; i < smaller.size(); ++i) codes[too_large[i]] = second_codes[i];
  }
  auto problem = RD_KAFKA_RESP_ERR_NO_ERROR;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    letters[i]->confirmed = codes[i] == RD_KAFKA_RESP_ERR_NO_ERROR;
    if (problem == RD_KAFKA_RESP_ERR_NO_ERROR) problem = producer_.cause_of(codes[i]);
  }
  throw_if_refused(problem, "dead-letter topic " + topic_);
  return problem;
}

std::vector<rd_kafka_resp_err_t> DeadLetterProducer::publish(std::span<DeadLetter* const> letters, CopiedHeaders copied,
                                                             ConfirmedProducer::Clock::time_point give_up) {
  std::vector<OutgoingRecord> records;
  records.reserve(letters.size());
  for (const DeadLetter* letter : letters) {
    const Incoming& incoming = *letter->incoming;
    records.push_back({.topic = topic_, .key = incoming.key, .body = {}, .headers = headers_of(*letter, copied)});
    if (incoming.has_body) records.back().body = incoming.body;
  }
  return producer_.publish(records, give_up);
}

}  // namespace kafka
TXINBOX_NAMESPACE_END
}  // namespace txinbox
