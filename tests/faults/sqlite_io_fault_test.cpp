// In each case, another one of the calls fails with which SQLite accesses its files.

#include "faults/sqlite_vfs.hpp"

#include <doctest/doctest.h>

#include "faults/fault_table.hpp"
#include "faults/sqlite_fault_case.hpp"

namespace txinbox::test {
namespace {

std::vector<Io> rehearse(const FaultDatabase& db, SqliteVfs& vfs, const SqliteImage& image, const SqliteSetup& setup) {
  std::vector<Io> calls;
  SqliteFaultCase rehearsal(db, image, setup);
  rehearsal.run(
      [&] {
        vfs.watch([&](Io io) {
          calls.push_back(io);
          return SqliteVfs::Verdict{};
        });
      },
      [&] { vfs.watch({}); });
  rehearsal.check_undisturbed();
  return calls;
}

/// Makes call `at` fail. With `lasting`, all later calls that can fail in this way fail, too.
void fail(SqliteFaultCase& each, SqliteVfs& vfs, std::size_t at, Failure failure, bool lasting) {
  std::size_t passed = 0;
  const auto watcher = [&](Io io) -> SqliteVfs::Verdict {
    const std::size_t now = passed++;
    if (lasting ? now < at : now != at) return {};
    const auto code = code_of(io, failure);
    return code ? SqliteVfs::Verdict{*code, failure == Failure::short_write} : SqliteVfs::Verdict{};
  };
  each.run([&] { vfs.watch(watcher); }, [&] { vfs.watch({}); });
  REQUIRE(passed > at);
}

}  // namespace

TEST_CASE("a failing call to a file loses and doubles nothing" * doctest::skip(!on_sqlite3())) {
  SqliteVfs vfs;
  const FaultDatabase db;
  for_each_sqlite_setup(db, subjects(), [&](const SqliteImage& image, const SqliteSetup& setup) {
    const std::vector<Io> calls = rehearse(db, vfs, image, setup);
    REQUIRE(calls.size() > 2);
    for (std::size_t at = 0; at < calls.size(); ++at) {
      for (const Failure failure : failures_of(calls[at])) {
        for (const bool lasting : {false, true}) {
          const std::string kind =
              "a call to a file fails: " + to_string(failure) + (lasting ? ", until repaired" : "");
          CAPTURE(at);
          CAPTURE(static_cast<int>(calls[at]));
          CAPTURE(kind);
          SqliteFaultCase each(db, image, setup);
          fail(each, vfs, at, failure, lasting);
          count_case(kind, setup.subject.name, each.check());
        }
      }
    }
  });
}

}  // namespace txinbox::test
