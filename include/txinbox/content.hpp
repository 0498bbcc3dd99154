#pragma once

/// @file
/// Joins several fields into the content of a message.

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// Joins several fields into one `Message::content`. Two different lists of fields never give the same content:
/// ("a", "bc") differs from ("ab", "c"), and ("a") differs from ("a", "").
///
/// Each field becomes a netstring (D. J. Bernstein, 1997): its length in bytes as a decimal number, a colon, its bytes,
/// a comma. ("a", "bc") becomes `1:a,2:bc,`. This format is the same in every version, because hashes of it are stored.
///
/// The order of the fields matters. Give the same fields in the same order for all messages of a consumer. Do not leave
/// out a field that is empty. If a new version of a service uses another list of fields, its deliveries are in conflict
/// with every row that the old version wrote.
///
/// @limits any number of fields, any bytes. The result is empty only if there are no fields. Empty content is not
///         compared.
/// @threads any.
std::string content_of(std::span<const std::string_view> fields);

/// The same for a list in braces: `content_of({amount, account})`.
inline std::string content_of(std::initializer_list<std::string_view> fields) {
  return content_of(std::span(fields.begin(), fields.size()));
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
