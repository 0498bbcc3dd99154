#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include <amqp.h>
#include <amqp_framing.h>
#include <txinbox/outbox.hpp>
#include <txinbox/redrive.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rabbitmq {

/// The properties of a published message, and the memory of its headers. The message must outlive this object.
class OutgoingProperties {
 public:
  explicit OutgoingProperties(const OutgoingMessage& message);

  /// Those of a delivery that is published again, with other headers as `Republisher` says.
  explicit OutgoingProperties(const Republication& message);
  OutgoingProperties(const OutgoingProperties&) = delete;
  OutgoingProperties& operator=(const OutgoingProperties&) = delete;

  const amqp_basic_properties_t& get() const noexcept { return properties_; }

  /// Whether AMQP can carry the properties: the name of a header has at most 255 bytes, and all properties must be in
  /// one frame. rabbitmq-c does not check this before it has sent a part of the message.
  bool fit(std::size_t frame_max) const;

 private:
  void add(const std::string& name, const std::string& value);

  amqp_basic_properties_t properties_{};
  std::deque<std::string> names_;
  std::vector<amqp_table_entry_t> entries_;
  std::size_t size_ = 0;  ///< The maximum size of the frame. 0: it is not known yet.
  bool are_valid_ = true;
};

}  // namespace rabbitmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
