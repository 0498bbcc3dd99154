#include "tables/row_state.hpp"

#include <string>

#include <txinbox/error.hpp>

#include "message/content_hash.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

Claim claim_for(const backend::ExistingRow& row, std::string_view content_hash) {
  if (is_conflict(row.content_hash, content_hash)) return Claim::conflict;
  const std::string& state = row.state;
  if (state == "consumed") return Claim::already_consumed;
  if (state == "consuming") return Claim::in_progress;
  if (state == "parked" || state == "torn") return Claim::parked;
  if (state == "discarded") return Claim::discarded;
  throw Error(ErrorCode::unknown_state, "a row of txinbox_consumed_message has the state '" + state +
                                            "', which this version does not know; upgrade the library");
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
