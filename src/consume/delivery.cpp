#include <txinbox/delivery.hpp>

#include <utility>

#include <txinbox/error.hpp>

#include "consume/run_handler.hpp"
#include "message/key.hpp"
#include "pool/connection_locals.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

Delivery::Delivery(const Message& message, int attempt, std::stop_token stop, std::size_t index)
    : message_(&message), attempt_(attempt), index_(index), stop_(std::move(stop)) {}

Delivery::Delivery(Delivery&&) noexcept = default;
Delivery::~Delivery() = default;

const Incoming& Delivery::incoming() const {
  if (message_->incoming == nullptr) {
    throw Error(ErrorCode::invalid_argument,
                "Delivery::incoming is known only to a handler that txinbox::run has called; if you call consume "
                "yourself, set Message::incoming, or use Delivery::message");
  }
  return *message_->incoming;
}

void Delivery::store(std::string result) {
  detail::check_result(result, max_result_);
  stored_ = std::move(result);
}

void Delivery::refuse(std::string result) {
  if (!may_refuse_) {
    throw Error(ErrorCode::invalid_argument,
                "Delivery::refuse rolls the handler's SQL back, and a handler of a LeaseConsumer is in no transaction; "
                "call store and return");
  }
  store(std::move(result));
  refused_ = true;
  throw detail::Refused{*stored_};
}

std::shared_ptr<void>& Delivery::connection_local(const std::type_info& type) {
  if (locals_ == nullptr) {
    own_locals_ = std::make_unique<detail::ConnectionLocals>();
    locals_ = own_locals_.get();
  }
  return locals_->of(type);
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
