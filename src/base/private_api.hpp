#pragma once

#include <txinbox/version.hpp>

/// A header whose contents libtxinbox or the programs of txinbox use opens and closes the namespace with these two
/// macros. A shared libtxinbox_core exports such contents, too. They are no part of the interface: each version may
/// change them.
#define TXINBOX_PRIVATE_API_BEGIN TXINBOX_API_BEGIN
/// See `TXINBOX_PRIVATE_API_BEGIN`.
#define TXINBOX_PRIVATE_API_END TXINBOX_API_END
