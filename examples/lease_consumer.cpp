// A handler that calls another service. No transaction can undo this call.
//
// Usage: lease_consumer [URL]      (by default sqlite:charges.db)

#include <chrono>
#include <cstdint>
#include <iostream>
#include <map>
#include <string>

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
  auto pool = txinbox::open_pool(url);
  {
    auto connection = pool.acquire();
    txinbox::migrate(connection);
  }
  PaymentService payments;

  // docs/guides/leases.md
  txinbox::LeaseConsumer consumer(pool, "charging", {.length = 30s, .heartbeat = 10s});
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
    return run(argc > 1 ? argv[1] : "sqlite:charges.db");
  } catch (const txinbox::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
