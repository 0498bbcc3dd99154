#include "faults/fault_table.hpp"

#include <map>
#include <mutex>

#include <fmt/format.h>

#include "faults/subject.hpp"
#include "support/counts.hpp"
#include "support/test_database.hpp"

namespace txinbox::test {
namespace {

struct Cell {
  int cases = 0;
  int lost = 0;
  int doubled = 0;
};

class Table {
 public:
  Table() = default;
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  ~Table() {
    fmt::print("\n{}: the faults tried\n\n| fault |", database());
    for (const Subject& each : subjects()) fmt::print(" {} |", each.name);
    fmt::print("\n|---|");
    for (std::size_t i = 0; i < subjects().size(); ++i) fmt::print("--:|");
    fmt::print("\n");
    Cell all;
    for (const auto& [kind, row] : rows_) {
      print_row(kind, row);
      for (const auto& [subject, cell] : row) {
        all.cases += cell.cases;
        all.lost += cell.lost;
        all.doubled += cell.doubled;
      }
    }
    fmt::print("\n");
    std::fflush(stdout);
    txinbox::test::count(all.cases, "faults");
    txinbox::test::count(all.lost, "lost where the settings allow it");
    txinbox::test::count(all.doubled, "doubled where a lease allows it");
  }

  void count(const std::string& kind, const std::string& subject, Mark mark) {
    const std::lock_guard lock(mutex_);
    Cell& cell = rows_[kind][subject];
    ++cell.cases;
    if (mark == Mark::lost) ++cell.lost;
    if (mark == Mark::doubled) ++cell.doubled;
  }

 private:
  static void print_row(const std::string& kind, const std::map<std::string, Cell>& row) {
    fmt::print("| {} |", kind);
    for (const Subject& each : subjects()) {
      const auto found = row.find(each.name);
      if (found == row.end()) {
        fmt::print(" - |");
        continue;
      }
      const Cell& cell = found->second;
      fmt::print(" {}", cell.cases);
      if (cell.lost != 0) fmt::print(" ({} lost)", cell.lost);
      if (cell.doubled != 0) fmt::print(" ({} doubled)", cell.doubled);
      fmt::print(" |");
    }
    fmt::print("\n");
  }

  std::mutex mutex_;
  std::map<std::string, std::map<std::string, Cell>> rows_;
};

}  // namespace

void count_case(const std::string& kind, const std::string& subject, Mark mark) {
  static Table table;
  table.count(kind, subject, mark);
}

}  // namespace txinbox::test
