#pragma once

#include <memory>

#include <txinbox/version.hpp>

#include "backend/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// A caller's session, for statements on the inbox's own tables.
class InboxSession {
 public:
  /// Errors: `Error` transaction_open; a schema code if the tables are not those of this library.
  explicit InboxSession(const backend::ConnectionPtr& connection);

  backend::Session& operator*() const noexcept { return *session_; }
  backend::Session* operator->() const noexcept { return session_.get(); }

 private:
  std::unique_ptr<backend::Session> session_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
