#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <amqp.h>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rabbitmq {

/// The value of an integer that an int64 can hold. None for another kind, and for a larger integer.
std::optional<std::int64_t> number_of(const amqp_field_value_t& field);

/// The value of a number, a boolean or a timestamp as text. Two numbers that differ have different texts, also if one
/// is an integer and the other a float. The texts of a decimal and of a float can be the same, because the text of a
/// float is the shortest one that identifies it. Empty for a table, an array and no value.
std::string text_of(const amqp_field_value_t& field);

}  // namespace rabbitmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
