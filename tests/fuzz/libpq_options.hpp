#pragma once

#include "base/url.hpp"

namespace txinbox::fuzz {

/// Claims that libpq reads from our connection string what the URL says, and nothing that it does not.
void claim_reaches_libpq(const detail::Url& url);

}  // namespace txinbox::fuzz
