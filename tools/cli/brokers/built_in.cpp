#include <fmt/format.h>

#include "cli/brokers/find_calls.hpp"
#include "console/usage_error.hpp"

// The build sets TXINBOX_CLI_BROKERS to X(kafka) X(rabbitmq) and so on: the components that it has.
#define X(name) TXINBOX_BROKER_CALLS(name);
TXINBOX_CLI_BROKERS
#undef X

namespace txinbox::cli {

const BrokerCalls& find_calls(std::string_view component) {
#define X(name) \
  if (component == #name) return *txinbox_broker_##name();
  TXINBOX_CLI_BROKERS
#undef X
  throw UsageError(fmt::format("this txinbox was built without {}: build it with {}{}", component,
                               build_option(component), component == "http" ? " and cpp-httplib" : ""));
}

}  // namespace txinbox::cli
