#pragma once

#include <memory>

#include <txinbox/pool.hpp>

#include "torture/subject.hpp"

namespace txinbox::torture {

/// The library's `LeaseConsumer`, which runs its handler at least once. `checks_fence`: false is broken on purpose,
/// because the handlers' resource then accepts late effects.
std::unique_ptr<Subject> make_lease_subject(Pool& pool, SubjectOptions options, bool checks_fence);

}  // namespace txinbox::torture
