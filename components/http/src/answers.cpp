#include "answers.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>
#include <txinbox/error.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Whether the error comes from the handler or from wrong use, and is not an error of the database.
bool is_unknown(const std::exception_ptr& error) noexcept {
  if (is_transient(error)) return false;
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return e.code() == ErrorCode::transaction_lost || e.code() == ErrorCode::unknown_state ||
           e.code() == ErrorCode::invalid_argument;
  } catch (...) {
    return true;
  }
}

}  // namespace

Response problem(int status, const std::string& title, const std::string& detail, const std::string& documentation) {
  nlohmann::ordered_json body = {{"title", title}, {"status", status}, {"detail", detail}};
  if (!documentation.empty()) body["type"] = documentation;
  Response response{.status = status,
                    .headers = {{"Content-Type", "application/problem+json"}},
                    .body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
  if (!documentation.empty()) response.headers.push_back({"Link", "<" + documentation + ">; rel=\"describedby\""});
  return response;
}

Response bad_key(const std::string& detail, const GuardOptions& options) {
  return problem(400, "Bad idempotency key", detail, options.documentation);
}

Response retry_after(Response response, milliseconds rest, const GuardOptions& options) {
  const auto longest = std::chrono::floor<seconds>(options.max_retry_after);
  const auto wait = std::clamp(std::chrono::ceil<seconds>(rest), seconds(1), longest);
  response.headers.push_back({"Retry-After", std::to_string(wait.count())});
  return response;
}

Response not_available(milliseconds rest, const GuardOptions& options) {
  return retry_after(problem(503, "Not available", "Send the request again later, with the same key."), rest, options);
}

Response failed(const std::exception_ptr& error, const Request& request, const GuardOptions& options) noexcept {
  constexpr int internal_error = 500;
  try {
    if (options.on_error) options.on_error(error, request);
    const bool passes =
        is_transient(error) || action_for(error) == Action::stop || action_for(error) == Action::redeliver;
    if (passes && !is_unknown(error)) return not_available({}, options);
    return problem(internal_error, "Internal error", "Send the request again with the same key.");
  } catch (...) {
    return {.status = internal_error};
  }
}

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
