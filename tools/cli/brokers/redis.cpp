#include <txinbox/redis.hpp>

#include "cli/brokers/broker_calls.hpp"

namespace txinbox::cli {
namespace {

std::vector<Finding> diagnose_redis_at(const std::string& url) { return diagnose_redis(redis_options_from_url(url)); }

constexpr BrokerCalls redis_calls{.diagnose = diagnose_redis_at};

}  // namespace
}  // namespace txinbox::cli

TXINBOX_BROKER_CALLS(redis) { return &txinbox::cli::redis_calls; }
