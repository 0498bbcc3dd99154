#include "variants.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/lease_consumer.hpp>
#include <txinbox/native.hpp>
#include <txinbox/soci/execute.hpp>
#include <txinbox/tx_consumer.hpp>

#include "business_work.hpp"
#include "by_hand.hpp"

namespace txinbox::bench {
namespace {

using Run = std::function<void(std::span<const Message>)>;

Run one_at_a_time(std::function<void(const Message&)> one) {
  return [one = std::move(one)](std::span<const Message> messages) {
    for (const Message& each : messages) one(each);
  };
}

Run in_parts(std::size_t size, Run part) {
  return [size, part = std::move(part)](std::span<const Message> messages) {
    for (; !messages.empty(); messages = messages.subspan(std::min(size, messages.size()))) {
      part(messages.first(std::min(size, messages.size())));
    }
  };
}

void require_acknowledged(const Result& result) {
  if (result.error) std::rethrow_exception(result.error);
  if (action_for(result) != Action::acknowledge) throw std::runtime_error("a message was not acknowledged");
}

}  // namespace

struct Variants::Impl {
  explicit Impl(Pool& from) : pool(from), connection(pool.acquire()), sql(connection), api(client_api(sql)) {
    add("by_hand_no_dedup", one_at_a_time([this](const Message& m) { update_without_dedup(*api, m); }), false, false);
    add("by_hand", one_at_a_time([this](const Message& m) { consume_by_hand(*api, m); }));
    add("by_hand_soci", one_at_a_time([this](const Message& m) { consume_by_soci(sql, m); }));
    add_consume("consume", business_handler());
    add_consume("consume_soci_handler", [](soci::session& s, Delivery& delivery) {
      const int row = row_of(delivery.message());
      s << "UPDATE bench_account SET n = n + 1 WHERE id = :row", soci::use(row);
    });
    add_consume("consume_execute", [](soci::session& s, Delivery& delivery) {
      execute(s, delivery, "UPDATE bench_account SET n = n + 1 WHERE id = :row", row_of(delivery.message()));
    });
    // The same work on one connection of the caller, once as a SOCI session and once as the client library's
    // connection.
    add_consume("consume_session", TxConsumer(sql, "consume_session"),
                [this](soci::session&, Delivery& delivery) { api->update(row_of(delivery.message())); });
    add_consume("consume_native", TxConsumer(native_handle(sql), "consume_native"),
                [this](NativeHandle, Delivery& delivery) { api->update(row_of(delivery.message())); });
    add_batch("batch_10", 10, business_handler());
    add_batch("batch_100", 100, business_handler());
    add_batch("batch_100_at_once", 100, business_batch_handler());
    add("by_hand_batch_100",
        in_parts(100, [this](std::span<const Message> part) { consume_batch_by_hand(*api, part); }), true, false);
    add("by_hand_batch_100_at_once",
        in_parts(100, [this](std::span<const Message> part) { consume_batch_at_once_by_hand(*api, part); }), true,
        false);
    add_leases();
  }

  /// A handler without work, so that only the two transactions of the lease count.
  void add_leases() {
    add("by_hand_lease", one_at_a_time([this](const Message& m) {
          api->lease(m.business_key);
          api->complete(m.business_key);
        }));
    auto consumer = std::make_shared<LeaseConsumer>(pool, "lease");
    add("lease",
        one_at_a_time([consumer](const Message& m) { require_acknowledged(consumer->consume(m, [](Lease&) {})); }));
    for (const std::size_t i : {all.size() - 2, all.size() - 1}) all[i].duplicates = all[i].updates = false;
  }

  void add(std::string name, Run run, bool claims = true, bool duplicates = true) {
    all.push_back({std::move(name), std::move(run), claims, duplicates});
  }

  void add_consume(const std::string& name, Handler handler) {
    add_consume(name, TxConsumer(pool, name), std::move(handler));
  }

  void add_consume(const std::string& name, TxConsumer from, Handler handler) {
    auto consumer = std::make_shared<TxConsumer>(std::move(from));
    add(name, one_at_a_time([consumer, handler = std::move(handler)](const Message& m) {
          require_acknowledged(consumer->consume(m, handler));
        }));
  }

  template <class AnyHandler>
  void add_batch(const std::string& name, std::size_t size, AnyHandler business) {
    auto consumer = std::make_shared<TxConsumer>(pool, name);
    add(name, in_parts(size, [consumer, handler = std::move(business)](std::span<const Message> part) {
          std::ranges::for_each(consumer->consume_batch(part, handler), require_acknowledged);
        }));
  }

  Pool& pool;
  Connection connection;
  soci::session& sql;
  std::unique_ptr<ClientApi> api;
  std::vector<Variant> all;
};

Variants::Variants(Pool& pool) : impl_(std::make_unique<Impl>(pool)) {}
Variants::~Variants() = default;

const std::vector<Variant>& Variants::all() const noexcept { return impl_->all; }
soci::session& Variants::session() const noexcept { return impl_->sql; }
void Variants::ping() { impl_->api->ping(); }

}  // namespace txinbox::bench
