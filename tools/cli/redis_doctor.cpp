#include "cli/redis_doctor.hpp"

#include <algorithm>

#include "console/database_option.hpp"
#include "console/usage_error.hpp"

#ifdef TXINBOX_CLI_REDIS
#include <txinbox/redis.hpp>
#endif

namespace txinbox::cli {

bool is_redis_url(std::string_view url) { return url.starts_with("redis://") || url.starts_with("rediss://"); }

bool is_redis_url_with_password(std::string_view argument) {
  if (argument.starts_with("-")) argument.remove_prefix(std::min(argument.find('='), argument.size() - 1) + 1);
  return is_redis_url(argument) && holds_password(argument);
}

#ifdef TXINBOX_CLI_REDIS
std::vector<Finding> diagnose_redis_at(const std::string& url) { return diagnose_redis(redis_options_from_url(url)); }
#else
std::vector<Finding> diagnose_redis_at(const std::string& /*url*/) {
  throw UsageError("this txinbox was built without redis: build it with -DTXINBOX_WITH_REDIS=ON");
}
#endif

}  // namespace txinbox::cli
