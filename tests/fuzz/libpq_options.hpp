#pragma once

#include "base/url.hpp"

namespace txinbox::fuzz {

/// Claims that libpq reads from our connection string exactly the values of the URL and txinbox's own parameters.
void claim_reaches_libpq(const detail::Url& url);

}  // namespace txinbox::fuzz
