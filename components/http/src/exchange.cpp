#include "exchange.hpp"

#include <chrono>
#include <exception>
#include <utility>

#include <txinbox/error.hpp>

#include "answers.hpp"
#include "stored_response.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http::detail {
namespace {

using std::chrono::milliseconds;

bool is_server_error(const Response& response) {
  constexpr int first = 500;
  return response.status >= first;
}

}  // namespace

Kept Exchange::run(const std::function<Response()>& handler) {
  answer_.reset();
  if (!too_late_.empty()) throw RetryLater(milliseconds(0), "a new request came too late");
  try {
    answer_ = handler();
  } catch (const Refusal& refusal) {
    answer_ = refusal.response();
    return {.answer = kept_form(), .rolls_back = !under_lease_};
  }
  // RetryLater rolls the transaction back and counts no failure of the message.
  const bool keeps = under_lease_ && options_.keep_server_errors;
  if (is_server_error(*answer_) && !keeps) throw RetryLater(milliseconds(0), "the handler answered 5xx");
  return {.answer = kept_form()};
}

Response Exchange::answer(const Request& request, const std::string& too_late,
                          const std::function<Result()>& consume) noexcept {
  try {
    too_late_ = too_late;
    return answer_to(consume(), request);
  } catch (...) {
    return failed(std::current_exception(), request, options_);
  }
}

Response Exchange::answer_to(Result&& result, const Request& request) {
  switch (result.outcome) {
    case Outcome::consumed:
      return std::move(answer_.value());
    case Outcome::already_consumed:
      if (auto stored = result.stored ? read_stored_form(*result.stored) : std::nullopt) {
        stored->headers.push_back({"Idempotent-Replayed", "true"});
        return std::move(*stored);
      }
      return problem(409, "Already done", "The request had its effect. Its answer was not kept.");
    case Outcome::conflict:
      return problem(422, "Key used for another request",
                     "An earlier request with this key was different. Use a new key for a new request.",
                     options_.documentation);
    case Outcome::in_progress:
      return retry_after(
          problem(409, "Still running", "A request with this key is still running.", options_.documentation),
          result.retry_after, options_);
    case Outcome::postponed:
      if (!too_late_.empty()) return bad_key(too_late_, options_);
      if (answer_) return std::move(*answer_);  // a server error that was not kept
      return not_available(result.retry_after, options_);
    case Outcome::parked:
    case Outcome::discarded:
      if (result.error) return failed(result.error, request, options_);
      return problem(409, "Given up", "An operator must look at the request with this key.");
    case Outcome::failed:
    case Outcome::not_run:
      break;
  }
  return failed(result.error, request, options_);
}

std::string Exchange::kept_form() const {
  std::string form = stored_form(*answer_, options_.kept_headers, true);
  if (form.size() <= max_result_ || !options_.keep_head) return form;
  return stored_form(*answer_, options_.kept_headers, false);
}

}  // namespace http::detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
