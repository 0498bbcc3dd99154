#include <utility>

#include <txinbox/delivery.hpp>

#include "key.hpp"

namespace txinbox::inline TXINBOX_ABI {

void Delivery::store(std::string result) {
  detail::check_result(result);
  stored_ = std::move(result);
}

}  // namespace txinbox::inline TXINBOX_ABI
