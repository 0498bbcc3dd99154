#pragma once

#include <functional>
#include <string>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Runs `work` in a child process. `work` calls the function that it gets, which ends the process at once, as a kill
/// does: no destructor runs, and the sockets close. It must call it within a minute.
///
/// @return empty if `work` has called it; otherwise what `work` returned or threw, the signal that ended the process,
/// or
///         that its time was over.
/// @errors `std::system_error` if there can be no child.
std::string run_in_child(const std::function<std::string(const std::function<void()>& end_process)>& work);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
