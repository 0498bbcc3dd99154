// Lets the tests of shared/ run on the database.

#include <memory>
#include <string>
#include <utility>

#include <txinbox/retention.hpp>

#include "support/lease_subject.hpp"
#include "support/leases.hpp"

namespace txinbox::test {
namespace {

class DatabaseKeeper final : public LeaseKeeper {
 public:
  LeaseConsumer consumer(const std::string& name, LeaseTerms terms, ConsumerOptions options) override {
    return {t_.pool, name, terms, std::move(options)};
  }
  std::string state() override { return row_state(t_.db); }
  std::string ends() override { return t_.db.text("select lease_expires_at from txinbox_consumed_message"); }
  void let_run_out() override { test::let_run_out(t_.db); }
  bool forget(const std::string& key) override { return txinbox::forget(*t_.db.session(), "svc", key); }
  long long consumed() override {
    return t_.db.number("select count(*) from txinbox_consumed_message where state = 'consumed'");
  }

 private:
  Leases t_;
};

}  // namespace

std::unique_ptr<LeaseKeeper> LeaseKeeper::make() { return std::make_unique<DatabaseKeeper>(); }

}  // namespace txinbox::test
