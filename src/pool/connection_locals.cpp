#include "pool/connection_locals.hpp"

#include <mutex>
#include <utility>
#include <vector>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

/// Keeps the object alive until the process ends.
void keep_forever(std::shared_ptr<void> object) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<std::shared_ptr<void>>;
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(object));
}

}  // namespace

ConnectionLocals::ConnectionLocals(const backend::NativeConnection& connection) : identity_(connection.identity()) {}

void ConnectionLocals::clear(const backend::NativeConnection& connection) noexcept {
  if (connection.identity() != identity_) {
    for (auto& [type, object] : objects_) keep_forever(std::move(object));
  }
  objects_.clear();
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
