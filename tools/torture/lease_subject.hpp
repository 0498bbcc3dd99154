#pragma once

#include <memory>

#include <txinbox/pool.hpp>

#include "torture/subject.hpp"

namespace txinbox::torture {

/// The library's `LeaseConsumer`, which promises its handler at least once. `asks_for_fence`: false is broken:
/// the handlers' resource takes what comes late.
std::unique_ptr<Subject> make_lease_subject(Pool& pool, SubjectOptions options, bool asks_for_fence);

}  // namespace txinbox::torture
