#include "row_state.hpp"

#include <string>

#include <txinbox/error.hpp>

namespace txinbox::inline TXINBOX_ABI::detail {

Claim claim_for_state(std::string_view state) {
  if (state == "consumed") return Claim::already_consumed;
  if (state == "consuming") return Claim::in_progress;
  if (state == "parked" || state == "torn") return Claim::parked;
  throw Error(ErrorCode::unknown_state, "a row of txinbox_consumed_message has the state '" + std::string(state) +
                                            "', which this version does not know; upgrade the library");
}

}  // namespace txinbox::inline TXINBOX_ABI::detail
