#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <txinbox/finding.hpp>

namespace txinbox::cli {

/// Whether the URL names a Redis server: redis:// or rediss://.
bool is_redis_url(std::string_view url);

/// Whether a word of the command line is such a URL with a password.
bool is_redis_url_with_password(std::string_view argument);

/// Which settings of this Redis server can lose leases.
///
/// Errors: `UsageError` if the component is not built in; as `redis_options_from_url` and `diagnose_redis`.
std::vector<Finding> diagnose_redis_at(const std::string& url);

}  // namespace txinbox::cli
