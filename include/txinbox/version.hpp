#pragma once

#if __cplusplus < 202002L
#error "txinbox needs C++20: compile with -std=c++20 or later"
#endif

/// The version of these headers. CMake reads it from here; nothing else repeats it.
#define TXINBOX_VERSION_MAJOR 0
#define TXINBOX_VERSION_MINOR 1
#define TXINBOX_VERSION_PATCH 0

/// The inline namespace of this ABI: 0.MINOR before 1.0, so that two versions cannot be linked into
/// one program by mistake.
#define TXINBOX_ABI v0_1

namespace txinbox::inline TXINBOX_ABI {

/// The version of the library that is linked, as "0.1.0". Differs from the macros when a program
/// runs with another shared library than it was compiled against.
///
/// Threads: any.
const char* version() noexcept;

}  // namespace txinbox::inline TXINBOX_ABI
