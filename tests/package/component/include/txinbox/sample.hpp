#pragma once

#include <string>

#include <txinbox/message.hpp>

namespace txinbox {
TXINBOX_API_BEGIN
namespace sample {

/// The checksum of a message's business key.
unsigned long checksum(const Message&);

}  // namespace sample
TXINBOX_API_END
}  // namespace txinbox
