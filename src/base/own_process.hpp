#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The process in which an object was made. A child of fork() has a copy of the object, but neither the
/// parent's threads nor connections of its own.
class OwnProcess {
 public:
  OwnProcess() noexcept : id_(::getpid()) {}

  bool is_this_one() const noexcept { return id_ == ::getpid(); }

 private:
  const pid_t id_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
