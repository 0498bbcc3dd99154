// In each case, another one of SQLite's allocations fails.

#include "faults/sqlite_memory.hpp"

#include <doctest/doctest.h>

#include "faults/fault_table.hpp"
#include "faults/sqlite_fault_case.hpp"
#include "faults/sqlite_vfs.hpp"

namespace txinbox::test {

TEST_CASE("a failing allocation in SQLite loses and doubles nothing" * doctest::skip(!on_sqlite3())) {
  SqliteMemory memory;
  const SqliteVfs quick;
  const FaultDatabase db;
  for_each_sqlite_setup(db, basic_subjects(), [&](const SqliteImage& image, const SqliteSetup& setup) {
    int allocations = 0;
    {
      SqliteFaultCase rehearsal(db, image, setup);
      rehearsal.run([&] { memory.watch([&] { return ++allocations > 0; }); }, [&] { memory.watch({}); });
      rehearsal.check_undisturbed();
    }
    if (setup.stage != Stage::closing) REQUIRE(allocations > 10);  // without a WAL, closing does little
    // Opening makes thousands of allocations, most of them for queries of the schema. A batch repeats its allocations.
    const int stride = setup.stage == Stage::opening ? 41 : setup.subject.batch ? 3 : 1;
    for (int at = 0; at < allocations; at += stride) {
      for (const bool lasting : {false, true}) {
        CAPTURE(at);
        CAPTURE(lasting);
        SqliteFaultCase each(db, image, setup);
        int passed = 0;
        each.run(
            [&] {
              memory.watch([&] {
                const int now = passed++;
                return lasting ? now < at : now != at;
              });
            },
            [&] { memory.watch({}); });
        REQUIRE(passed > at);
        count_case(lasting ? "SQLite has no memory, until repaired" : "SQLite has no memory", setup.subject.name,
                   each.check());
      }
    }
  });
}

}  // namespace txinbox::test
