#pragma once

#include <sqlite3.h>

#include "faults/power_disk.hpp"

namespace txinbox::test {

/// Until this process ends, the default VFS keeps databases and their journals on a simulated disk whose power can be
/// cut. Locks and shared memory are real.
PowerDisk& use_power_disk();

}  // namespace txinbox::test
