#pragma once

#include <exception>

#include "torture/counters.hpp"

namespace txinbox::torture {

/// Counts a database's error, told by its code. Others are not counted.
void count(const std::exception_ptr& error, Counters& met);

}  // namespace txinbox::torture
