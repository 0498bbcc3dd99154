#pragma once

#include <string>

#include <txinbox/message.hpp>

namespace txinbox::sample {

/// The checksum of a message's business key.
unsigned long checksum(const Message&);

}  // namespace txinbox::sample
