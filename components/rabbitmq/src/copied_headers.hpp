#pragma once

#include <cstddef>
#include <vector>

#include <amqp.h>
#include <amqp_framing.h>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rabbitmq {

/// Gives the headers CC and BCC the names `txinbox-cc` and `txinbox-bcc`. The broker would route a dead letter by them:
/// to the queue from which it came, for example.
void rename_routing_headers(std::vector<amqp_table_entry_t>& headers);

/// Whether the properties of a message can be sent in one frame, as AMQP demands. rabbitmq-c finds out only after it
/// has sent a part of the message.
bool fits_into_frame(const amqp_basic_properties_t& properties, std::size_t frame_max);

}  // namespace rabbitmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
