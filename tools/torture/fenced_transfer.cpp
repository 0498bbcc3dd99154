#include "torture/fenced_transfer.hpp"

#include <thread>

#include <soci/soci.h>

#include "torture/dice.hpp"
#include "torture/fenced_resource.hpp"
#include "torture/transfer_statements.hpp"

namespace txinbox::torture {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds short_pause{2};
constexpr milliseconds crossing_pause{5};
constexpr milliseconds longest_wait_for_successor{10'000};

}  // namespace

void FencedTransfer::operator()(Lease& lease) {
  const Arrival& arrival = assignment_.arrivals.at(index_);
  const KeyPlan key = setting_.plan.key(arrival.key);
  if (lease.message().business_key != key.business_key) {
    throw WrongMessage("a handler got another message than its own");
  }
  LeaseConduct conduct = lease_conduct_of(setting_.plan.seed(), arrival, key.is_hot);
  if (!setting_.checks_fence) conduct = unfenced_conduct(key, conduct);
  behave(lease, key, conduct);
  die_if_told(setting_.plan, assignment_, index_);
}

void FencedTransfer::behave(Lease& lease, const KeyPlan& key, LeaseConduct conduct) {
  const auto outlive = [this] { std::this_thread::sleep_for(setting_.lease + setting_.lease / 2); };
  if (conduct == LeaseConduct::throws_first) fail("before its work");
  if (conduct == LeaseConduct::late_effect) {
    outlive();
    if (!setting_.checks_fence) let_successor_go_first(lease, key);
  }
  if (conduct == LeaseConduct::renews) lease.renew();
  work(lease, key, conduct);
  if (conduct == LeaseConduct::renews) lease.renew();
  if (conduct == LeaseConduct::late_completion) outlive();
  if (conduct == LeaseConduct::throws_last) fail("after its work");
}

void FencedTransfer::work(Lease& lease, const KeyPlan& key, LeaseConduct conduct) {
  const auto pause = conduct == LeaseConduct::slow      ? short_pause
                     : conduct == LeaseConduct::crosses ? crossing_pause
                                                        : milliseconds(0);
  const std::string run = setting_.names.next();
  const Connection connection = setting_.pool.acquire();
  soci::session& sql = connection.session();
  soci::transaction transaction(sql);
  const FencedResource resource(sql, key.business_key);
  const auto place = setting_.checks_fence ? resource.pass(lease.fence()) : resource.pass_anyway(lease.fence());
  if (!place) throw FenceRefused("the resource has seen a greater fence");
  const Transfer& transfer = key.transfer;
  const bool takes_first = (transfer.from < transfer.to) != (conduct == LeaseConduct::crosses);
  for (const bool takes : {takes_first, !takes_first}) {
    add(sql, takes ? transfer.from : transfer.to, takes ? -transfer.amount : transfer.amount);
    std::this_thread::sleep_for(pause);
  }
  enter_fenced(sql, run, key.business_key, transfer, {.fence = lease.fence(), .place = *place});
  if (conduct == LeaseConduct::throws_uncommitted) fail("before its commit");
  transaction.commit();
  if (key.stores) lease.delivery().store(run);
}

/// Makes sure that an ignored fence causes a wrong result: the first handler of a contested key is late, and the later
/// handlers are not.
LeaseConduct FencedTransfer::unfenced_conduct(const KeyPlan& key, LeaseConduct otherwise) const {
  if (!is_contested(setting_.plan.seed(), assignment_.arrivals.at(index_).key)) return otherwise;
  if (key.copies == 1) return LeaseConduct::honest;  // no other handler follows
  const Connection connection = setting_.pool.acquire();
  const bool is_first = FencedResource(connection.session(), key.business_key).introduce();
  return is_first ? LeaseConduct::late_effect : LeaseConduct::honest;
}

/// Waits until a later handler has had its effect.
void FencedTransfer::let_successor_go_first(const Lease& lease, const KeyPlan& key) {
  constexpr milliseconds pause{20};
  for (milliseconds waited{0}; waited < longest_wait_for_successor; waited += pause) {
    const Connection connection = setting_.pool.acquire();
    if (FencedResource(connection.session(), key.business_key).greatest() > lease.fence()) return;
    std::this_thread::sleep_for(pause);
  }
}

void FencedTransfer::fail(const char* when) {
  is_failure_planned_ = true;
  throw PlannedFailure(when);
}

}  // namespace txinbox::torture
