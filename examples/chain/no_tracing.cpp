#include "tracing.hpp"

namespace chain {

Tracing::Tracing(const char*, const char*) {}
Tracing::~Tracing() = default;

}  // namespace chain
