#pragma once

#include <string>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Returns the name that shows operators who holds a lease: the host and the process, at most 64 bytes of visible
/// ASCII.
std::string host_and_process();

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
