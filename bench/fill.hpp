#pragma once

#include <string>

namespace soci {
class session;
}

namespace txinbox::bench {

/// Fills the inbox with that many consumed rows of one consumer, whose keys are spread evenly over all
/// that `spread_key` gives; then has the server write them out, so that it is at rest. They are days old.
void fill(soci::session&, const std::string& consumer, long long rows);

}  // namespace txinbox::bench
