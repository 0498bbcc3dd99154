#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// `Message::content` of several fields, joined so that no two lists of fields have one content:
/// ("a", "bc") differs from ("ab", "c"), and ("a") from ("a", "").
///
/// Each field is a netstring (D. J. Bernstein, 1997), one behind the other: its length in bytes as a
/// decimal number, a colon, its bytes, a comma. ("a", "bc") is `1:a,2:bc,`. That stays so in every
/// version, since hashes of it are stored.
///
/// The order counts. Give the fields of all messages of a consumer in one order, and leave none out
/// where it is empty; a service that takes another list of fields has a conflict with each row that the
/// old one wrote.
///
/// Limits: any number of fields, any bytes. Empty only for no fields, and then not compared.
/// Threads: any.
std::string content_of(std::span<const std::string_view> fields);

inline std::string content_of(std::initializer_list<std::string_view> fields) {
  return content_of(std::span(fields.begin(), fields.size()));
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
