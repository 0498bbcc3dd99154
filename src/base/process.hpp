#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <string>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The process that made an object. A child of fork() has a copy of the object. But the child has neither the parent's
/// threads nor connections of its own.
class OwnProcess {
 public:
  OwnProcess() noexcept : id_(::getpid()) {}

  bool is_this_one() const noexcept { return id_ == ::getpid(); }

 private:
  const pid_t id_;
};

/// Returns the name that shows operators who holds a lease: the host and the process, at most 64 bytes of visible
/// ASCII.
std::string host_and_process();

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
