// The checks of LeaseWorld: what a delivery under a lease may return.

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>
#include <txinbox/error.hpp>

#include "support/lease_world.hpp"

namespace txinbox::test {

using namespace std::chrono_literals;
using namespace std::chrono_literals;
using std::chrono::milliseconds;

void LeaseWorld::check_lease(const Call& call, const Lease& held) {
  if (holds(call.token, held.fence()) && held.expires_at() > row_->ends) {
    wrong("the worker believes that its lease ends later than the store says");
  }
  const bool over = now_ >= held.expires_at();
  if (over != (held.remaining() == 0ms)) wrong("the remaining time is wrong");
  if ((over || stop_.stop_requested()) && !held.stop_token().stop_requested()) wrong("the stop token is not set");
}

void LeaseWorld::check_result(const Call& call, const Result& result) {
  if (call.began_stopped) wrong("a delivery began after the stop");
  if (call.parked && result.outcome != Outcome::parked) wrong("the message was parked, and the caller is not told");
  const bool consumed = row_ && row_->state == RowState::consumed;
  switch (result.outcome) {
    case Outcome::consumed:
      if (!consumed || row_->token != call.token) wrong("consumed, and the key is not consumed by this call");
      if (!completions_.contains({call.token, call.fence}))
        wrong("consumed, and the call did not complete the message");
      if (call.handlers != 1) wrong("consumed, and the handler did not run");
      if (result.stored != call.stored || (consumed && row_->result != call.stored)) wrong("the result is wrong");
      break;
    case Outcome::already_consumed:
      if (!consumed || row_->token == call.token) wrong("already_consumed, and no other call has consumed the key");
      if (consumed && result.stored != row_->result) wrong("the result of the original is wrong");
      if (!result.age || *result.age > now_ - (consumed ? row_->consumed_at : now_)) wrong("the age is wrong");
      break;
    case Outcome::in_progress:
      if (!row_ || row_->state != RowState::in_progress || row_->token == call.token) {
        wrong("in_progress, and no other call has the lease");
      }
      if (result.retry_after <= 0ms || result.retry_after > lease) wrong("retry_after is wrong");
      break;
    case Outcome::conflict:
      if (!row_ || row_->hash.empty() || row_->hash == call.hash) wrong("conflict without another content");
      break;
    case Outcome::parked:
      if (!row_ || row_->state != RowState::parked) wrong("parked, and the key is not parked");
      if ((call.handlers == 1) != (result.error != nullptr)) wrong("the error of parked is missing or wrong");
      break;
    case Outcome::postponed:
      if (call.handler != HandlerKind::postpones || result.retry_after != 1s) wrong("postponed for no reason");
      break;
    default:
      wrong("an outcome that a lease consumer does not have");
  }
  const bool may_run = result.outcome == Outcome::consumed || result.outcome == Outcome::postponed ||
                       (result.outcome == Outcome::parked && call.parked);
  if (call.handlers != (may_run ? 1 : 0)) wrong("the handler ran or did not run against the outcome");
}

void LeaseWorld::check_error(const Call& call, const std::exception_ptr& error) {
  if (call.parked) wrong("the message was parked, and the caller is not told");
  const std::string name = error_class(error);
  if (call.began_stopped != (name == "stopped")) wrong("the delivery does not heed the stop: " + name);
  if (call.began_stopped && !call.token.empty()) wrong("a stopped consumer calls the store");
  if (name == "stopped") return;
  if (name == "lease_lost") {
    const bool has_key = row_ && row_->token == call.token;
    if (!call.forgotten && !call.slow && has_key) wrong("the lease is lost for no reason");
    if (!call.forgotten && now_ < call.began + lease) wrong("the lease is lost before its end");
  } else if (name == "test lost") {
    const bool tried_again = call.lost >= tries || call.renewing || stop_.stop_requested();
    if (!tried_again) wrong("a lost call of the store was not tried again");
  } else if (name == "rejected" ? call.handler != HandlerKind::rejects : call.handler != HandlerKind::fails) {
    wrong("an error that nobody threw: " + name);
  }
}

}  // namespace txinbox::test
