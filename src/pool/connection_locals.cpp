#include "pool/connection_locals.hpp"

#include <mutex>
#include <utility>
#include <vector>

#include <soci/session.h>

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

ConnectionLocals::ConnectionLocals(soci::session& session) : backend_(session.get_backend()) {}

void ConnectionLocals::clear(soci::session& session) noexcept {
  if (session.get_backend() != backend_) {
    for (auto& [type, object] : objects_) keep_forever(std::move(object));
  }
  objects_.clear();
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
