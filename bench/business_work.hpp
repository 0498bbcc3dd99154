#pragma once

#include <memory>

#include <soci/soci.h>
#include <txinbox/tx_consumer.hpp>

#include "client_api.hpp"
#include "database.hpp"

namespace txinbox::bench {

/// The prepared UPDATE that a handler keeps with its connection: the very statement that is used by
/// hand, so that a comparison shows what the inbox costs and not what another statement costs.
class BusinessWork {
 public:
  explicit BusinessWork(soci::session& sql) : api_(client_api(sql)) {}

  void run(const Message& message) { api_->update(row_of(message)); }

 private:
  std::unique_ptr<ClientApi> api_;
};

inline Handler business_handler() {
  return [](soci::session& sql, Delivery& delivery) {
    delivery.per_connection<BusinessWork>(sql).run(delivery.message());
  };
}

}  // namespace txinbox::bench
