#pragma once

/// @file
/// The version of the library, and the inline namespace of its ABI.

#if __cplusplus < 202002L
#error "txinbox needs C++20: compile with -std=c++20 or later"
#endif

/// The version of these headers: MAJOR.MINOR.PATCH. CMake reads it from here. No other file repeats it. Before 1.0, the
/// API may change with each MINOR.
#define TXINBOX_VERSION_MAJOR 0
/// See `TXINBOX_VERSION_MAJOR`.
#define TXINBOX_VERSION_MINOR 1
/// See `TXINBOX_VERSION_MAJOR`.
#define TXINBOX_VERSION_PATCH 0

/// Each file of the library opens and closes the inline namespace of this ABI with these two macros. Before 1.0, each
/// 0.MINOR has an ABI of its own. If a program links two versions of the library by mistake, their symbols have
/// different names.
#define TXINBOX_NAMESPACE_BEGIN inline namespace v0_1 {
/// See `TXINBOX_NAMESPACE_BEGIN`.
#define TXINBOX_NAMESPACE_END }

/// Each public header opens and closes the same namespace with these two macros. A shared library exports what is
/// declared between them, and nothing else.
///
/// A service needs these macros only to declare a class of txinbox without its header.
#define TXINBOX_API_BEGIN inline namespace v0_1 __attribute__((visibility("default"))) {
/// See `TXINBOX_API_BEGIN`.
#define TXINBOX_API_END }

namespace txinbox {
TXINBOX_API_BEGIN

/// The version of the library that the program runs with, such as "0.1.0". It differs from the macros if this is
/// another shared library than the one that the program was compiled with.
///
/// @threads any.
const char* version() noexcept;

TXINBOX_API_END
}  // namespace txinbox
