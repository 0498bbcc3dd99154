#pragma once

#include <set>

#include "backend/table_check.hpp"

namespace txinbox::test {

/// The numbers of all parts of the outbox.
inline std::set<int> all_outbox_parts() {
  std::set<int> parts;
  for (int part = 0; part < backend::outbox_parts; ++part) parts.insert(part);
  return parts;
}

}  // namespace txinbox::test
