#include "problem.hpp"

#include <nlohmann/json.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {

Response problem(int status, const std::string& title, const std::string& detail, const std::string& documentation) {
  nlohmann::ordered_json body = {{"title", title}, {"status", status}, {"detail", detail}};
  if (!documentation.empty()) body["type"] = documentation;
  Response response{.status = status,
                    .headers = {{"Content-Type", "application/problem+json"}},
                    .body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
  if (!documentation.empty()) response.headers.push_back({"Link", "<" + documentation + ">; rel=\"describedby\""});
  return response;
}

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
