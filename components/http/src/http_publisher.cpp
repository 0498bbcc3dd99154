#include <txinbox/http_publisher.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <txinbox/error.hpp>

#include "shared/sigpipe_block.hpp"
#include "webhook_request.hpp"
#include "webhook_url.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

void check(const HttpPublisherOptions& options, const HttpSend& send) {
  const auto require = [](bool holds, const char* text) {
    if (!holds) throw Error(ErrorCode::invalid_argument, text);
  };
  require(options.timeout >= milliseconds(8) && options.timeout <= std::chrono::days(1),
          "HttpPublisherOptions::timeout must be from 8 ms to a day");
  require(is_field_value(options.content_type) && is_field_value(options.authorization),
          "HttpPublisherOptions: content_type and authorization must not contain control characters");
  require(static_cast<bool>(send), "the function `send` is empty; give a function that sends requests");
}

bool is_confirmed(int status) { return status >= 200 && status <= 299; }

/// Whether the receiver says that the message itself is not valid. A missing page or a missing right does not mean
/// this.
bool is_rejected(int status) {
  switch (status) {
    case 400:
    case 413:
    case 414:
    case 415:
    case 422:
    case 431:
      return true;
    default:
      return false;
  }
}

bool lacks_right(int status) { return status == 401 || status == 403; }

/// Whether the service is the reason for the status, and not the message.
bool is_busy(int status) { return status == 429 || (status >= 502 && status <= 504); }

bool is_for_all(int status) { return status == 429 || status == 503; }

class Webhook {
 public:
  Webhook(HttpPublisherOptions options, HttpSend send)
      : options_(std::move(options)),
        target_(target_of(options_.url)),
        server_(server_of(options_.url)),
        send_(std::move(send)) {
    check(options_, send_);
  }
  ~Webhook() {
    const component::SigpipeBlock no_signal;  // the end of a TLS connection is a write
    send_ = nullptr;
  }
  Webhook(const Webhook&) = delete;
  Webhook& operator=(const Webhook&) = delete;

  std::vector<PublishResult> publish(std::span<const OutgoingMessage> messages) {
    const component::SigpipeBlock no_signal;  // a server may answer and close before it has read the whole request
    last_begin_ = Clock::now() + options_.timeout / 4;
    is_away_ = false;
    has_answer_ = false;
    std::vector<PublishResult> results;
    results.reserve(messages.size());
    std::size_t answered = 0;  // one more than the index of the last message with an answer
    std::vector<std::size_t> unanswered;
    for (const OutgoingMessage& message : messages) {
      Attempt attempt = publish(message);
      if (attempt.end == End::unanswered) unanswered.push_back(results.size());
      results.push_back(std::move(attempt.result));
      if (attempt.end == End::answered) answered = results.size();
    }
    // A message that the server answered later shows that the server works. Otherwise it may have gone away or be
    // overloaded, or it is a load balancer without a server behind it.
    if (!unanswered.empty() && !has_answer_) throw std::runtime_error(results[unanswered.front()].error);
    for (const std::size_t i : unanswered) {
      if (i >= answered) results[i] = {.status = PublishStatus::postponed};
    }
    return results;
  }

 private:
  /// How a request ended.
  enum class End { not_sent, answered, unanswered };

  struct Attempt {
    PublishResult result;
    End end = End::not_sent;
  };

  Attempt publish(const OutgoingMessage& message) {
    const auto now = Clock::now();
    if (now < not_before_ || is_away_ || now >= last_begin_) {
      const auto left = std::chrono::ceil<milliseconds>(not_before_ - now);
      return {{.status = PublishStatus::postponed, .retry_after = std::max(left, milliseconds(0))}};
    }
    Request request;
    try {
      request = webhook_request(options_, target_, message);
    } catch (const Error& error) {
      return {{.status = PublishStatus::rejected, .error = error.what()}};
    }
    try {
      const auto response =
          send_(request, {.connect = shortest_time_out(), .write = shortest_time_out(), .total = options_.timeout / 2});
      if (!response) {
        const bool is_closed = Clock::now() - now < shortest_time_out();
        return {{.status = PublishStatus::failed,
                 .error = server_ + (is_closed ? ": the server closed the connection without an answer"
                                               : ": the server did not answer in time")},
                End::unanswered};
      }
      has_answer_ = true;
      return {result_of(*response), End::answered};
    } catch (const std::exception&) {
      if (!has_answer_) throw;
      is_away_ = true;
      return {{.status = PublishStatus::postponed}};
    }
  }

  milliseconds shortest_time_out() const { return options_.timeout / 8; }

  PublishResult result_of(const Response& response) {
    if (is_confirmed(response.status)) return {};
    std::string error = server_ + ": HTTP status " + std::to_string(response.status);
    if (lacks_right(response.status)) {
      error += "; correct HttpPublisherOptions::authorization, or TXINBOX_HTTP_AUTHORIZATION for the command";
    }
    if (is_rejected(response.status)) return {.status = PublishStatus::rejected, .error = std::move(error)};
    const milliseconds wait = retry_after(response, std::chrono::system_clock::now());
    if (is_busy(response.status)) is_away_ = true;
    if (is_for_all(response.status)) not_before_ = Clock::now() + wait;
    return {.status = PublishStatus::failed, .error = std::move(error), .retry_after = wait};
  }

  const HttpPublisherOptions options_;
  const std::string target_;
  const std::string server_;  ///< For error texts.
  HttpSend send_;
  Clock::time_point last_begin_{};  ///< After this time, no request of the current call begins.
  Clock::time_point not_before_{};  ///< The end of the pause that the service has requested.
  bool is_away_ = false;            ///< The other messages of the current call are postponed.
  bool has_answer_ = false;         ///< The service has answered in the current call.
};

}  // namespace
}  // namespace http

Publisher http_publisher(const HttpPublisherOptions& options, HttpSend send) {
  const auto webhook = std::make_shared<http::Webhook>(options, std::move(send));
  return [webhook](std::span<const OutgoingMessage> messages) { return webhook->publish(messages); };
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
