// A handler that calls another service, in a service without a database: its leases are in Redis.
//
// Usage: redis_lease_consumer [URL]      (by default redis://localhost)
//
// The environment variable TXINBOX_REDIS_PASSWORD has the password.

#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>
#include <map>
#include <string>

#include <txinbox/redis.hpp>
#include <txinbox/txinbox.hpp>

namespace {

using namespace std::chrono_literals;

struct Charge {
  std::string no;
  long long cents;
};

// In place of a service elsewhere. It stores the greatest fence and refuses smaller ones.
class PaymentService {
 public:
  std::string charge(const Charge& charge, std::int64_t fence) {
    std::int64_t& last = fences_[charge.no];
    if (fence < last) throw txinbox::Error(txinbox::ErrorCode::lease_lost, "a newer worker has called already");
    last = fence;
    return "receipt for " + charge.no;
  }

 private:
  std::map<std::string, std::int64_t> fences_;
};

int run(const std::string& url) {
  PaymentService payments;

  // components/redis/README.md
  txinbox::LeaseConsumer consumer(txinbox::open_redis(url), "charging", {.length = 30s, .heartbeat = 10s});
  const auto on_charge = txinbox::idempotent(consumer, &Charge::no, [&](txinbox::Lease& lease, const Charge& charge) {
    lease.delivery().store(payments.charge(charge, lease.fence()));  // duplicates get the receipt, too
  });

  for (int delivery = 1; delivery <= 2; ++delivery) {
    const txinbox::Result result = on_charge(Charge{"charge123", 1999});
    std::cout << txinbox::to_string(result.outcome) << ": " << result.stored.value_or("nothing") << '\n';
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "redis://localhost");
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
