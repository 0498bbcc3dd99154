#pragma once

#include <string>

namespace soci {
class session;
}

namespace txinbox::bench {

/// Fills the inbox with this number of consumed rows of one consumer. The rows are days old, and their keys are
/// distributed evenly over the range of `spread_key`. Then lets the server write all rows to the disk, so that it does
/// no work during the measurement.
void fill(soci::session&, const std::string& consumer, long long rows);

}  // namespace txinbox::bench
