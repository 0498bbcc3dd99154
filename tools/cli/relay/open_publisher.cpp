#include "cli/relay/open_publisher.hpp"

#include <string_view>

#include "console/database_option.hpp"
#include "console/usage_error.hpp"

#ifdef TXINBOX_CLI_KAFKA
#include <txinbox/kafka_publisher.hpp>
#endif

namespace txinbox::cli {

Publisher open_publisher(const std::string& url, [[maybe_unused]] std::chrono::milliseconds timeout) {
  if (holds_password(url)) {
    throw UsageError(
        "--to holds a password, which every user of this machine can read; docs/operations/command.md says where the "
        "password of each broker belongs");
  }
  if (!url.starts_with("kafka://")) throw UsageError("--to: the URL of the broker must begin with kafka://");
#ifdef TXINBOX_CLI_KAFKA
  KafkaPublisherOptions options = kafka_publisher_options_from_url(url);
  options.timeout = timeout;
  return kafka_publisher(options);
#else
  throw UsageError("this txinbox was built without kafka: build it with -DTXINBOX_WITH_KAFKA=ON");
#endif
}

}  // namespace txinbox::cli
