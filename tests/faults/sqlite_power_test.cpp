// The power is cut at each call with which SQLite accesses its files. The process ends, and only a part of the unsynced
// writes is on the disk.

#include "faults/sqlite_power_vfs.hpp"

#include <array>
#include <csignal>
#include <functional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <doctest/doctest.h>

#include "faults/broker.hpp"
#include "faults/fault_table.hpp"
#include "faults/report_pipe.hpp"
#include "faults/sqlite_image.hpp"
#include "faults/sqlite_vfs.hpp"
#include "support/child_process.hpp"

namespace txinbox::test {
namespace {

using Fate = PowerDisk::Fate;

/// Which unsynced writes the disk keeps.
enum class Kept { nothing, all, prefix, sectors, scrambled_sectors };

std::string to_string(Kept kept) {
  switch (kept) {
    case Kept::nothing:
      return "none kept";
    case Kept::all:
      return "all kept";
    case Kept::prefix:
      return "the first kept";
    case Kept::sectors:
      return "some sectors kept";
    case Kept::scrambled_sectors:
      return "some sectors scrambled";
  }
  return "";
}

void cut(PowerDisk& disk, Kept kept, unsigned seed) {
  std::mt19937 random(seed);
  const std::size_t at_risk = disk.pieces_at_risk();
  const std::size_t first = std::uniform_int_distribution<std::size_t>(0, at_risk)(random);
  disk.cut([&](std::size_t piece) {
    switch (kept) {
      case Kept::nothing:
        return Fate::lost;
      case Kept::all:
        return Fate::kept;
      case Kept::prefix:
        return piece < first ? Fate::kept : Fate::lost;
      case Kept::sectors:
        return random() % 2 == 0 ? Fate::kept : Fate::lost;
      case Kept::scrambled_sectors:
        return std::array{Fate::kept, Fate::lost, Fate::scrambled}[random() % 3];
    }
    return Fate::lost;
  });
}

/// The events before the first power cut: none, or a message is consumed. With checkpoints, a checkpoint of the
/// WAL follows each commit.
enum class Start { cold, warm, warm_with_checkpoints };

struct Setup {
  const Subject& subject;
  std::string journal_mode;
  std::string synchronous;
  Start start;
};

/// A moment at which the power can be cut: before a call, or after the last call.
struct Moment {
  std::size_t at_risk = 0;
  int version = 0;
};

constexpr auto warmed_up = "warmed up";
constexpr auto warm_ups = "select count(*) from txinbox_consumed_message where business_key like 'warm-up%'";

/// Runs a service in the child process, from its start to its end. `at_call` runs before each call at which the power
/// can be cut, and once after the last call.
void serve(const Setup& setup, const std::string& url, const std::vector<Message>& messages, const ReportPipe& report,
           const std::function<void()>& at_call) {
  SqliteVfs vfs(SqliteVfs::Syncs::pass_on);
  const auto begin = [&] {
    vfs.watch([&](Io) {
      at_call();
      return SqliteVfs::Verdict{};
    });
  };
  if (setup.start == Start::cold) begin();
  {
    Service service(setup.subject, url);
    service.with_session([&](soci::session& sql) {
      sql << "pragma journal_mode = " + setup.journal_mode;
      if (!setup.subject.pooled) sql << "pragma synchronous = " + setup.synchronous;  // a pool sets this
      if (setup.start == Start::warm_with_checkpoints) sql << "pragma wal_autocheckpoint = 1";
    });
    if (setup.start != Start::cold) {
      service.warm_up();
      report.write(warmed_up);
      begin();
    }
    const std::vector<Action> actions = service.deliver(messages, write_two_rows);
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (actions[i] != Action::acknowledge) throw std::logic_error("a delivery failed without a power cut");
      report.write(messages[i].business_key);
    }
  }
  at_call();
}

std::vector<Moment> rehearse(const Setup& setup, const FaultDatabase& db) {
  ReportPipe report;
  const ChildEnding end = run_in_child([&] {
    PowerDisk& disk = use_power_disk();
    ReportPipe ignored;
    serve(setup, db.url(), messages_for(setup.subject, 1), ignored,
          [&] { report.write(std::to_string(disk.pieces_at_risk()) + " " + std::to_string(disk.version())); });
  });
  REQUIRE(end.signal == 0);
  REQUIRE(end.status == 0);
  std::vector<Moment> moments;
  for (const std::string& line : report.lines()) {
    std::istringstream(line) >> moments.emplace_back().at_risk >> moments.back().version;
  }
  return moments;
}

struct CutEnd {
  int undone;  ///< The number of acknowledged messages whose effects are lost.
  bool doubled;
};

CutEnd run_case(const FaultDatabase& db, const Setup& setup, std::size_t moment, Kept kept) {
  Broker broker(db, setup.subject, messages_for(setup.subject, 1));
  ReportPipe report;
  const ChildEnding end = run_in_child([&] {
    PowerDisk& disk = use_power_disk();
    std::size_t passed = 0;
    serve(setup, db.url(), broker.messages(), report, [&] {
      if (passed++ != moment) return;
      cut(disk, kept, static_cast<unsigned>(moment));
      die();
    });
  });
  REQUIRE(end.signal == SIGKILL);

  CHECK(db.text("pragma integrity_check") == "ok");
  int lost = 0;
  for (const std::string& key : report.lines()) {
    const bool there = key == warmed_up ? db.number(warm_ups) > 0 : db.claim_of(key) == "consumed";
    if (!there) ++lost;
  }
  for (const Message& each : broker.messages()) {
    const bool consumed = db.claim_of(each) == "consumed";
    const Rows rows = db.rows_of(each);
    if (consumed || !setup.subject.leased) CHECK((rows == (consumed ? Rows{1, 1} : Rows{0, 0})));
    CHECK(rows.first == rows.second);
  }
  Service replica(setup.subject, db.url());
  broker.deliver_until_settled(replica);
  return {lost, broker.check_promise(replica)};
}

/// Cuts the power at every moment. Returns how many acknowledged messages were lost in all cuts together.
int lost_in_all_cuts(const FaultDatabase& db, const Setup& setup, const std::vector<Kept>& ways,
                     const std::string& kind) {
  CAPTURE(setup.subject.name);
  CAPTURE(setup.journal_mode);
  CAPTURE(setup.synchronous);
  CAPTURE(static_cast<int>(setup.start));
  const SqliteImage image(db, setup.journal_mode);
  image.restore();
  const std::vector<Moment> moments = rehearse(setup, db);
  REQUIRE(moments.size() > 10);
  int lost = 0;
  int last_version = -1;
  for (std::size_t at = 0; at < moments.size(); ++at) {
    const Moment& moment = moments[at];
    const bool new_state = std::exchange(last_version, moment.version) != moment.version && moment.at_risk > 0;
    // If nothing was written after the previous moment, one way is enough.
    for (const Kept kept : new_state ? ways : std::vector{ways[at % ways.size()]}) {
      CAPTURE(at);
      const std::string way = to_string(kept);
      CAPTURE(way);
      image.restore();
      const auto [undone, doubled] = run_case(db, setup, at, kept);
      lost += undone;
      const Mark mark = undone > 0 ? Mark::lost : doubled ? Mark::doubled : Mark::none;
      count_case(kind + (moment.at_risk == 0 ? "there are none" : way), setup.subject.name, mark);
    }
  }
  image.restore();
  return lost;
}

const std::vector<Kept> all_ways = {Kept::nothing, Kept::all, Kept::prefix, Kept::sectors, Kept::scrambled_sectors};

}  // namespace

TEST_CASE("a power cut undoes nothing that was acknowledged" * doctest::skip(!on_sqlite3())) {
  const SqliteVfs quick;
  FaultDatabase db;
  for (const Subject& subject : basic_subjects()) {
    for (const Start start : {Start::cold, Start::warm_with_checkpoints}) {
      const std::string kind = "power cut, unsynced writes: ";
      CHECK(lost_in_all_cuts(db, {subject, "wal", "full", start}, all_ways, kind) == 0);
      if (subject.pooled && start == Start::cold) continue;  // a pool starts in WAL mode
      CHECK(lost_in_all_cuts(db, {subject, "delete", "extra", start}, all_ways, kind) == 0);
    }
  }
}

TEST_CASE("with a weaker setting a power cut undoes acknowledged messages" * doctest::skip(!on_sqlite3())) {
  const SqliteVfs quick;
  FaultDatabase db;
  for (const Subject& subject : basic_subjects()) {
    if (subject.pooled) continue;
    const std::string kind = "power cut with weaker settings, unsynced writes: ";
    CHECK(lost_in_all_cuts(db, {subject, "wal", "normal", Start::warm}, all_ways, kind) > 0);
    CHECK(lost_in_all_cuts(db, {subject, "delete", "full", Start::warm}, all_ways, kind) > 0);
    CHECK(lost_in_all_cuts(db, {subject, "wal", "off", Start::warm}, {Kept::nothing}, kind) > 0);
  }
}

}  // namespace txinbox::test
