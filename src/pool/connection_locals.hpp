#pragma once

#include <map>
#include <memory>
#include <typeindex>

#include <txinbox/delivery.hpp>

#include "backend/native_connection.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The objects that handlers keep with one connection. Each type has one object.
class ConnectionLocals {
 public:
  ConnectionLocals() = default;
  explicit ConnectionLocals(const backend::NativeConnection& connection);
  ConnectionLocals(ConnectionLocals&&) noexcept = default;
  ConnectionLocals& operator=(ConnectionLocals&&) noexcept = default;

  std::shared_ptr<void>& of(const std::type_info& type) { return objects_[type]; }

  bool empty() const noexcept { return objects_.empty(); }

  /// Destroys all objects, unless a handler has reconnected the session. The destructor of a SOCI statement uses its
  /// session's backend, so objects of a replaced connection are never destroyed.
  void clear(const backend::NativeConnection& connection) noexcept;

 private:
  const void* identity_ = nullptr;
  std::map<std::type_index, std::shared_ptr<void>> objects_;
};

/// Lets the consumers set members of a delivery that handlers must not set.
struct DeliveryAccess {
  static void set_max_result(Delivery& delivery, std::size_t most) noexcept { delivery.max_result_ = most; }
  static void forbid_refusal(Delivery& delivery) noexcept { delivery.may_refuse_ = false; }
  static void set_keeps_statements(Delivery& delivery, bool keeps) noexcept { delivery.keeps_statements_ = keeps; }
  static bool is_refused(const Delivery& delivery) noexcept { return delivery.refused_; }
  static void set_locals(Delivery& delivery, ConnectionLocals& locals) noexcept { delivery.locals_ = &locals; }
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
