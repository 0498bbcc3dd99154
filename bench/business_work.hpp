#pragma once

#include <memory>
#include <span>
#include <vector>

#include <soci/soci.h>
#include <txinbox/tx_consumer.hpp>

#include "client_api.hpp"
#include "database.hpp"

namespace txinbox::bench {

/// The prepared UPDATE that a handler keeps with its connection. The transaction by hand uses the same statement, so
/// that a comparison shows the cost of the inbox alone.
class BusinessWork {
 public:
  explicit BusinessWork(soci::session& sql) : api_(client_api(sql)) {}

  void run(const Message& message) { api_->update(row_of(message)); }

  void run(std::span<Delivery> deliveries) {
    std::vector<int> rows;
    for (const Delivery& each : deliveries) rows.push_back(row_of(each.message()));
    api_->update_all(rows);
  }

 private:
  std::unique_ptr<ClientApi> api_;
};

inline Handler business_handler() {
  return [](soci::session& sql, Delivery& delivery) {
    delivery.per_connection<BusinessWork>(sql).run(delivery.message());
  };
}

/// One statement for all messages of a batch. Each message must change another row.
inline BatchHandler business_batch_handler() {
  return [](soci::session& sql, std::span<Delivery> deliveries) {
    deliveries.front().per_connection<BusinessWork>(sql).run(deliveries);
  };
}

}  // namespace txinbox::bench
