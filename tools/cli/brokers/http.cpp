#include <txinbox/http/httplib_sender.hpp>
#include <txinbox/http_publisher.hpp>

#include "cli/brokers/broker_calls.hpp"

namespace txinbox::cli {
namespace {

Publisher open_webhook(const HttpPublisherOptions& options) {
  return http_publisher(options, http::httplib_sender(options));
}

constexpr BrokerCalls webhook_calls{.open_publisher = open_with_timeout<http_publisher_options_from_url, open_webhook>};

}  // namespace
}  // namespace txinbox::cli

TXINBOX_BROKER_CALLS(http) { return &txinbox::cli::webhook_calls; }
