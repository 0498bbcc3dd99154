#pragma once

#include <sqlite3.h>

#include "faults/power_disk.hpp"

namespace txinbox::test {

/// Makes the default VFS keep databases and their journals on a disk whose power can be cut, until this
/// process ends. Locks and shared memory are the real ones.
PowerDisk& use_power_disk();

}  // namespace txinbox::test
