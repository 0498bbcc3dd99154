#pragma once

#include <chrono>
#include <stdexcept>

#include <txinbox/lease_consumer.hpp>
#include <txinbox/pool.hpp>

#include "torture/conduct.hpp"
#include "torture/messages.hpp"
#include "torture/plan.hpp"
#include "torture/transfer_handler.hpp"

namespace txinbox::torture {

/// The resource has already seen the fence of a later lease, or the same fence.
class FenceRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The handler of one delivery under a lease. It runs the transfer of its key in its own transaction. The seed decides
/// how it behaves.
///
/// It works like a service that stores the greatest fence of each key in a resource, and refuses smaller fences.
class FencedTransfer {
 public:
  struct Setting {
    Pool& pool;
    const Plan& plan;
    RunNames& names;
    std::chrono::milliseconds lease;
    bool checks_fence = true;  ///< False is broken on purpose: the resource accepts every fence.
  };

  FencedTransfer(const Setting& setting, const Assignment& assignment, std::size_t index)
      : setting_(setting), assignment_(assignment), index_(index) {}

  void operator()(Lease& lease);

  /// Whether it threw on purpose.
  bool is_failure_planned() const { return is_failure_planned_; }

 private:
  void behave(Lease& lease, const KeyPlan& key, LeaseConduct conduct);
  LeaseConduct unfenced_conduct(const KeyPlan& key, LeaseConduct otherwise) const;
  void let_successor_go_first(const Lease& lease, const KeyPlan& key);
  void work(Lease& lease, const KeyPlan& key, LeaseConduct conduct);
  [[noreturn]] void fail(const char* when);

  const Setting& setting_;
  const Assignment& assignment_;
  std::size_t index_;
  bool is_failure_planned_ = false;
};

}  // namespace txinbox::torture
