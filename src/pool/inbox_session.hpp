#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <txinbox/operator_action.hpp>
#include <txinbox/version.hpp>

#include "backend/session.hpp"
#include "backend/table_check.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// A caller's session, for statements on the inbox's own tables.
class InboxSession {
 public:
  /// Errors: `Error` transaction_open; a schema code if the tables are not those of this library.
  explicit InboxSession(const backend::ConnectionPtr& connection);

  /// For a change by an operator. It also makes sure that `tables` are there, and that they can keep `by`. If there is
  /// no `by`, nothing is recorded, and the tables are not needed.
  ///
  /// Errors: `Error` invalid_argument for `by`, and those of the other constructor.
  InboxSession(const backend::ConnectionPtr& connection, const std::optional<OperatorAction>& by,
               std::span<const std::string_view> tables = audit_only);

  backend::Session& operator*() const noexcept { return *session_; }
  backend::Session* operator->() const noexcept { return session_.get(); }

 private:
  static constexpr std::array audit_only{backend::audit_table};

  static const backend::ConnectionPtr& prepared_for(const backend::ConnectionPtr& connection,
                                                    const std::optional<OperatorAction>& by,
                                                    std::span<const std::string_view> tables);

  std::unique_ptr<backend::Session> session_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
