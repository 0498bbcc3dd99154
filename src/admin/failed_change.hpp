#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>

#include <txinbox/failed_messages.hpp>
#include <txinbox/version.hpp>

#include "backend/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Changes a failed message in the open transaction. Returns false if it has changed nothing.
using FailedChange = std::function<bool(backend::Session&, const FailedMessage&)>;

/// Which of the messages that a filter selects are changed.
enum class FailedRows {
  all,
  with_payload,  ///< Only messages whose payload is stored.
};

/// Changes each of these messages that the filter selects, in a transaction of its own, with a row of the audit.
///
/// Errors: as `retry_failed`.
///
/// @return how many messages were changed.
std::size_t change_failed(const ConnectionRef&, FailedFilter, FailedRows, const std::optional<OperatorAction>& by,
                          std::string_view action, const FailedChange&);

/// Lets the next delivery of a parked or failing message run, in the open transaction. Returns false if the message is
/// in another state.
bool let_run(backend::Session&, const FailedMessage&);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
