#pragma once

#include <map>
#include <memory>
#include <typeindex>

#include <txinbox/delivery.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// What handlers keep with one connection, by its type.
class ConnectionLocals {
 public:
  ConnectionLocals() = default;
  explicit ConnectionLocals(soci::session& session);
  ConnectionLocals(ConnectionLocals&&) noexcept = default;
  ConnectionLocals& operator=(ConnectionLocals&&) noexcept = default;

  std::shared_ptr<void>& of(const std::type_info& type) { return objects_[type]; }

  /// Destroys all of them, unless a handler has reconnected the session: a SOCI statement reaches for
  /// its session's backend when it is destroyed, so those that have outlived theirs never are.
  void clear(soci::session& session) noexcept;

 private:
  const void* backend_ = nullptr;
  std::map<std::type_index, std::shared_ptr<void>> objects_;
};

/// Lets the consumers set what a handler must not.
struct DeliveryAccess {
  static void set_locals(Delivery& delivery, ConnectionLocals& locals) noexcept { delivery.locals_ = &locals; }
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
