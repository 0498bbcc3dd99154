// The tests of conformance/lease/shared on Redis.

#include <memory>
#include <string>
#include <utility>

#include "redis_server.hpp"
#include "support/lease_subject.hpp"

namespace txinbox::test {
namespace {

class RedisKeeper final : public LeaseKeeper {
 public:
  LeaseConsumer consumer(const std::string& name, LeaseTerms terms, ConsumerOptions options) override {
    return {store_, name, terms, std::move(options)};
  }
  std::string state() override {
    const auto keys = server_.keys();
    return keys.empty() ? "" : server_.field(keys.at(0), "state");
  }
  std::string ends() override { return server_.field(server_.keys().at(0), "ends"); }
  void let_run_out() override {
    for (const std::string& key : server_.keys()) {
      if (server_.field(key, "state") == "consuming") server_.set_field(key, "ends", "1");
    }
  }
  bool forget(const std::string& key) override { return server_.run({"DEL", "txinbox:3:svc:" + key}) == "1"; }
  long long consumed() override {
    long long count = 0;
    for (const std::string& key : server_.keys()) count += server_.field(key, "state") == "consumed" ? 1 : 0;
    return count;
  }

 private:
  RedisServer server_;
  std::shared_ptr<LeaseStore> store_ = open_redis(RedisServer::options());
};

}  // namespace

std::unique_ptr<LeaseKeeper> LeaseKeeper::make() { return std::make_unique<RedisKeeper>(); }

}  // namespace txinbox::test
