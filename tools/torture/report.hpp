#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "torture/broker.hpp"
#include "torture/dead_letters.hpp"
#include "torture/imbalance.hpp"
#include "torture/outbox_checker.hpp"
#include "torture/storm.hpp"

namespace txinbox::torture {

/// The result of a storm.
struct Report {
  std::string database = {};        ///< "sqlite3", "mysql" or "postgresql".
  std::string server_version = {};  ///< As the server reports it.
  bool is_leased = false;
  bool has_outbox = false;
  bool has_redrive = false;
  std::uint64_t seed = 0;
  std::uint64_t keys = 0;
  std::uint64_t effects = 0;
  std::uint64_t lost_commit_replies = 0;  ///< Keys that took effect, but whose worker was killed before its reply.
  Broker::Tally tally;
  StormFigures figures;
  DeadLetters::Tally letters = {};
  OutboxFigures outbox = {};
  std::vector<Imbalance> wrong;

  bool balances() const { return wrong.empty(); }
};

/// An aligned table, the imbalances if there are any, and a line that says whether everything balances.
std::string as_text(const Report& report);

/// The same as one JSON object.
std::string as_json(const Report& report);

}  // namespace txinbox::torture
