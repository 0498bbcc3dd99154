#pragma once

#if __cplusplus < 202002L
#error "txinbox needs C++20: compile with -std=c++20 or later"
#endif

/// The version of these headers. CMake reads it from here; nothing else repeats it.
#define TXINBOX_VERSION_MAJOR 0
#define TXINBOX_VERSION_MINOR 1
#define TXINBOX_VERSION_PATCH 0

/// Each header opens and closes with these the inline namespace of this ABI: 0.MINOR before 1.0. If a program links two
/// versions of the library by mistake, their symbols do not meet.
#define TXINBOX_NAMESPACE_BEGIN inline namespace v0_1 {
#define TXINBOX_NAMESPACE_END }

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// The version of the library that is linked, as "0.1.0". Differs from the macros when a program
/// runs with another shared library than it was compiled against.
///
/// Threads: any.
const char* version() noexcept;

TXINBOX_NAMESPACE_END
}  // namespace txinbox
