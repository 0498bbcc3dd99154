#pragma once

#include <string>

namespace soci {
class session;
}

namespace txinbox::bench {

/// The business work of a delivery: adds 1 to an account, with the fault that bench/peers/protocol.md describes.
void handle_with_fault(soci::session& sql, int account, const std::string& fault);

}  // namespace txinbox::bench
