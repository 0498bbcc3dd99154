#include "transaction/claim.hpp"

#include <string>

#include <txinbox/error.hpp>

#include "message/content_hash.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

Claim claim_for(const backend::ClaimedRow& row, std::string_view content_hash) {
  if (is_conflict(row.content_hash, content_hash)) return Claim::conflict;
  if (!row.state) {
    throw Error(ErrorCode::unknown_state, "a row of txinbox_consumed_message has the state '" + row.unknown_state +
                                              "', which this version does not know; upgrade the library");
  }
  switch (*row.state) {
    case RowState::consumed:
      return Claim::already_consumed;
    case RowState::consuming:
      return Claim::in_progress;
    case RowState::discarded:
      return Claim::discarded;
    case RowState::torn:
      if (row.is_undecided()) return Claim::in_progress;
      break;
    case RowState::parked:
      break;
  }
  return Claim::parked;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
