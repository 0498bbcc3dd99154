#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "faults/broker.hpp"
#include "faults/fault_table.hpp"
#include "faults/sqlite_image.hpp"

namespace txinbox::test {

/// During which part of a service's life a fault occurs.
enum class Stage { opening, delivery, closing };

std::string to_string(Stage);

struct SqliteSetup {
  const Subject& subject;
  std::string journal_mode;
  Stage stage;
};

/// One delivery with a fault. It begins with the bytes of the image.
class SqliteFaultCase {
 public:
  SqliteFaultCase(const FaultDatabase&, const SqliteImage&, const SqliteSetup&);

  /// Opens the service and delivers, or only delivers, or only closes the service. `breaks` runs immediately before
  /// this, and `repairs` immediately after it.
  void run(const std::function<void()>& breaks, const std::function<void()>& repairs);

  /// Checks a delivery without a fault.
  void check_undisturbed() const;

  /// Checks that acknowledged messages took effect, that one redelivery to the same service settles the others, that
  /// all effects are as promised, that no lock remains, and that the session has its original settings.
  Mark check();

 private:
  void open() { service_.emplace(setup_.subject, db_.url()); }
  void deliver();
  void check_service(Service& another);

  const FaultDatabase& db_;
  const SqliteSetup& setup_;
  Broker broker_;
  std::vector<Action> actions_;
  std::optional<Service> service_;
};

/// Runs `try_all` for each of these subjects, every journal mode and every stage.
void for_each_sqlite_setup(const FaultDatabase&, std::span<const Subject>,
                           const std::function<void(const SqliteImage&, const SqliteSetup&)>& try_all);

}  // namespace txinbox::test
