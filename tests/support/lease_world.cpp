#include "support/lease_world.hpp"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <type_traits>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <txinbox/error.hpp>

#include "lease/lease_delivery.hpp"
#include "types/enum_names.hpp"

namespace txinbox::test {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

namespace {

constexpr detail::EnumNames<LeaseTwist, LeaseTwist::other_content> twist_names(
    "lose_request", "lose_reply", "slow_reply", "part_of_lease", "whole_lease", "valid_for", "other_claims",
    "other_completes", "other_fails", "forget", "stop", "delivery", "other_content");

constexpr detail::EnumNames<HandlerKind, HandlerKind::postpones> handler_names("succeeds", "stores", "renews", "fails",
                                                                               "rejects", "postpones");

/// The token of the other worker. It is not hexadecimal, so no delivery has it.
constexpr const char* other_token = "the token of the other worker";

LeaseRequest request_of_other() {
  LeaseRequest request{};
  request.token = other_token;
  request.lease = LeaseWorld::lease;
  request.valid_for = LeaseWorld::valid_for;
  return request;
}

LeaseStoreError lost() { return {LeaseStoreError::Kind::transient, "test", "lost", "the test loses this call"}; }

}  // namespace

std::string_view to_string(LeaseTwist twist) noexcept { return twist_names[twist]; }
std::string_view to_string(HandlerKind handler) noexcept { return handler_names[handler]; }

/// Makes the start of an attempt and the event lease_taken_over points at which something can happen.
class LeaseWorld::Observer final : public Listener {
 public:
  explicit Observer(LeaseWorld& world) : world_(world) {}

  void on_begin(const Scope& scope) override {
    if (scope.kind == ScopeKind::attempt) world_.point();
  }

  void on_event(const Event& event) override {
    if (event.type != EventType::lease_taken_over) return;
    ++world_.calls_.back()->taken_over_events;
    world_.point();
  }

 private:
  LeaseWorld& world_;
};

LeaseWorld::LeaseWorld(HandlerKind handler)
    : handler_(handler), timer_(detail::LeaseTimer::make_without_thread(*this)) {
  start();
}

void LeaseWorld::start() {
  stop_ = {};
  ConsumerOptions options{.retry = {.max_runs = tries, .initial_backoff = 0ms, .max_backoff = 0ms},
                          .stop = stop_.get_token(),
                          .listeners = {std::make_shared<Observer>(*this)},
                          .max_attempts = max_attempts};
  const std::shared_ptr<LeaseStore> store(std::shared_ptr<void>(), this);
  leases_ = std::make_unique<detail::StoreLeases>(store, "svc", terms_.length, std::move(options), *this);
}

void LeaseWorld::wrong(const std::string& text) {
  if (problem_.empty()) problem_ = fmt::format("{} (after point {})", text, static_cast<int>(points_.size()) - 1);
}

void LeaseWorld::run(const std::vector<LeaseTwistAt>& twists) {
  twists_ = twists;
  deliver("a", handler_);
  deliver("a", handler_);
  twists_.clear();
  const std::size_t points = points_.size();
  start();
  advance(lease);
  deliver("a", HandlerKind::succeeds);
  points_.resize(points);
  const bool is_done = row_ && row_->state != RowState::in_progress;
  const bool is_conflict = row_ && ends.back() == "conflict";
  if (!is_done && !is_conflict) wrong("the last delivery has not ended the message, but ended with " + ends.back());
}

/// Runs one delivery, and checks how it ends.
void LeaseWorld::deliver(const std::string& content, HandlerKind handler) {
  Call call{.handler = handler, .content = content, .began = now_, .began_stopped = stop_.stop_requested()};
  calls_.push_back(&call);
  const Message message{.business_key = "k", .message_id = "m", .content = content, .valid_for = valid_for};
  const LeaseHandler run = [&](Lease& held) { handle(call, held); };
  try {
    const Result result =
        detail::LeaseDelivery(terms_, *leases_, *timer_, message, run, detail::Counting::at_once).consume();
    ends.emplace_back(to_string(result.outcome));
    check_result(call, result);
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    ends.push_back(error_class(error));
    check_error(call, error);
  }
  if (call.handlers > 1) wrong("the handler ran twice in one delivery");
  if (call.taken_over_events != (call.taken_over ? 1 : 0)) wrong("the event lease_taken_over is missing or wrong");
  calls_.pop_back();
}

void LeaseWorld::handle(Call& call, Lease& held) {
  ++call.handlers;
  if (held.fence() != call.fence) wrong("the handler gets another fence than the store has granted");
  if (now_ >= held.expires_at()) wrong("the handler begins under a lease that is over");
  if (!call.forgotten && !holds(call.token, held.fence())) wrong("the handler begins without the lease");
  point();
  check_lease(call, held);
  if (call.handler == HandlerKind::renews) {
    const Time sent = now_;
    try {
      held.renew();
      if (held.expires_at() != sent + lease) wrong("the lease does not end when the renewal says");
      check_lease(call, held);
    } catch (const Error&) {
      if (!held.stop_token().stop_requested()) wrong("the lease is lost, and the stop token is not set");
      throw;
    }
  }
  switch (call.handler) {
    case HandlerKind::succeeds:
      return;
    case HandlerKind::stores:
    case HandlerKind::renews:
      call.stored = fmt::format("result of {}", held.fence());
      return held.delivery().store(*call.stored);
    case HandlerKind::fails:
      call.counts = !stop_.stop_requested();
      throw std::runtime_error("the handler fails");
    case HandlerKind::rejects:
      call.counts = !stop_.stop_requested();
      throw Error(ErrorCode::rejected, "the handler rejects the message");
    case HandlerKind::postpones:
      throw RetryLater(1s, "the handler needs time");
  }
}

void LeaseWorld::advance(milliseconds time) {
  now_ += time;
  timer_->check();
}

/// Something may happen here.
void LeaseWorld::point(bool of_store) {
  const int at = static_cast<int>(points_.size());
  points_.push_back(of_store);
  twist_.reset();
  for (const LeaseTwistAt& each : twists_) {
    if (each.point != at) continue;
    happen(each.what);
    twist_ = each.what;
    return;
  }
}

void LeaseWorld::happen(LeaseTwist twist) {
  switch (twist) {
    case LeaseTwist::part_of_lease:
      return advance(lease * 2 / 3);
    case LeaseTwist::whole_lease:
      return advance(lease);
    case LeaseTwist::valid_for:
      return advance(valid_for);
    case LeaseTwist::other_claims:
      claim_step(request_of_other());
      return;
    case LeaseTwist::other_completes:
      return other_ends(true);
    case LeaseTwist::other_fails:
      return other_ends(false);
    case LeaseTwist::forget:
      row_.reset();
      for (Call* each : calls_) each->forgotten = true;
      return;
    case LeaseTwist::stop:
      stop_.request_stop();
      return;
    case LeaseTwist::delivery:
      return deliver("a", handler_);
    case LeaseTwist::other_content:
      return deliver("b", handler_);
    default:
      return;
  }
}

void LeaseWorld::other_ends(bool succeeds) {
  if (!row_ || row_->token != other_token || row_->state != RowState::in_progress) return;
  if (succeeds) {
    row_->state = RowState::consumed;
    row_->consumed_at = now_;
    row_->result = "result of the other worker";
  } else {
    fail_step(request_of_other(), row_->fence,
              {.counts = true, .rejected = false, .max_attempts = max_attempts, .error_class = "x"});
  }
}

bool LeaseWorld::holds(std::string_view token, std::int64_t fence) const {
  return row_ && row_->state == RowState::in_progress && row_->token == token && row_->fence == fence;
}

template <class Step>
auto LeaseWorld::step(const LeaseRequest& request, const Step& do_it) {
  Call& call = *calls_.back();
  if (call.token.empty()) {
    call.token = request.token;
    call.hash = request.content_hash;
    if (call.token.size() != 32 || !tokens_.insert(call.token).second) wrong("the token is not new");
  }
  if (request.token != call.token) wrong("the token changes during the call");
  if (request.consumer != "svc" || request.business_key != "k" || request.message_id != "m" ||
      request.content_hash.size() != 64 || request.lease != lease || request.valid_for != valid_for) {
    wrong("the request is wrong");
  }
  const Time sent = now_;
  advance(1ms);
  point(true);
  const auto twist = twist_;
  if (twist == LeaseTwist::lose_request || twist == LeaseTwist::lose_reply) ++call.lost;
  if (twist == LeaseTwist::lose_request) throw lost();
  auto answer = do_it();
  advance(twist == LeaseTwist::slow_reply ? lease : 1ms);
  if (now_ >= sent + lease) call.slow = true;
  if (twist == LeaseTwist::lose_reply) throw lost();
  call.lost = 0;
  return answer;
}

LeaseAnswer LeaseWorld::claim(const LeaseRequest& request) {
  Call& call = *calls_.back();
  LeaseAnswer answer = step(request, [&] { return claim_step(request); });
  if (call.handlers > 0) wrong("a claim after the handler");
  call.taken_over = call.taken_over || answer.taken_over;
  if (answer.claim == Claim::claimed) call.fence = answer.fence;
  return answer;
}

/// The rules of `LeaseStore::claim`.
LeaseAnswer LeaseWorld::claim_step(const LeaseRequest& request) {
  const auto grant = [&](bool taken_over, std::string hash, int failures) {
    row_ = Row{.token = std::string(request.token),
               .hash = std::move(hash),
               .fence = ++last_fence_,
               .ends = now_ + request.lease,
               .failures = failures};
    return LeaseAnswer{
        .claim = Claim::claimed, .fence = last_fence_, .taken_over = taken_over, .remaining = request.lease};
  };
  const std::string hash(request.content_hash);
  if (!row_) return grant(false, hash, 0);
  const bool ours = row_->token == request.token;
  const auto age = std::chrono::floor<milliseconds>(now_ - row_->consumed_at);
  if (row_->state == RowState::consumed && !ours && request.valid_for > 0ms && age >= request.valid_for) {
    return grant(false, hash, 0);
  }
  const auto remaining = std::chrono::floor<milliseconds>(row_->ends - now_);
  const bool has_lease = row_->state == RowState::in_progress && !row_->released && remaining > 0ms;
  if (ours && has_lease) return {.claim = Claim::claimed, .fence = row_->fence, .remaining = remaining};
  if (!hash.empty() && !row_->hash.empty() && hash != row_->hash) return {.claim = Claim::conflict};
  if (row_->state == RowState::consumed) {
    return {.claim = Claim::already_consumed, .age = age, .result = row_->result};
  }
  if (row_->state == RowState::parked) return {.claim = Claim::parked};
  if (has_lease) return {.claim = Claim::in_progress, .remaining = remaining};
  return grant(!ours && !row_->released, hash.empty() ? row_->hash : hash, row_->failures);
}

bool LeaseWorld::renew(const LeaseRequest& request, std::int64_t fence) {
  Call& call = *calls_.back();
  if (fence != call.fence) wrong("the fence of a renewal is wrong");
  call.renewing = true;
  return step(request, [&] {
    if (!holds(request.token, fence) || row_->released) return false;
    row_->ends = now_ + request.lease;
    return true;
  });
}

bool LeaseWorld::complete(const LeaseRequest& request, std::int64_t fence, const std::optional<std::string>& result) {
  Call& call = *calls_.back();
  if (fence != call.fence) wrong("the fence of a completion is wrong");
  call.renewing = false;
  if (call.handlers != 1) wrong("a completion without the handler");
  if (result != call.stored) wrong("the result of a completion is wrong");
  return step(request, [&] {
    if (row_ && row_->state == RowState::consumed && row_->token == request.token && row_->fence == fence) return true;
    if (!holds(request.token, fence) || row_->released) return false;
    row_->state = RowState::consumed;
    row_->consumed_at = now_;
    row_->result = result;
    completions_.emplace(request.token, fence);
    return true;
  });
}

bool LeaseWorld::fail(const LeaseRequest& request, std::int64_t fence, const LeaseFailure& failure) {
  Call& call = *calls_.back();
  if (fence != call.fence) wrong("the fence of a failure is wrong");
  if (++call.failures > 1) wrong("a failure is counted twice");
  if (failure.counts != call.counts) wrong("it is wrong whether a failure counts");
  if (failure.rejected != (call.counts && call.handler == HandlerKind::rejects)) wrong("it is wrong what was rejected");
  if (failure.max_attempts != max_attempts || failure.error_class.empty()) wrong("the failure is described wrongly");
  const bool parked = step(request, [&] { return fail_step(request, fence, failure); });
  call.parked = parked;
  return parked;
}

bool LeaseWorld::fail_step(const LeaseRequest& request, std::int64_t fence, const LeaseFailure& failure) {
  if (!row_ || row_->token != request.token || row_->fence != fence) return false;
  if (row_->state == RowState::parked) return true;
  if (row_->state != RowState::in_progress || row_->released) return false;
  row_->failures += failure.counts ? 1 : 0;
  row_->released = true;
  const bool too_many = failure.max_attempts > 0 && row_->failures >= failure.max_attempts;
  if (!failure.counts || (!failure.rejected && !too_many)) return false;
  row_->state = RowState::parked;
  return true;
}

}  // namespace txinbox::test
