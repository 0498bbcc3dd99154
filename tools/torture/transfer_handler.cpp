#include "torture/transfer_handler.hpp"

#include <algorithm>
#include <csignal>
#include <thread>

#include <fmt/format.h>
#include <soci/soci.h>
#include <unistd.h>

#include "backend/registry.hpp"
#include "soci_adapter/soci_connection.hpp"
#include "torture/bad_deployment.hpp"
#include "torture/counters.hpp"
#include "torture/dice.hpp"
#include "torture/misbehaviours.hpp"
#include "torture/outbox_handler.hpp"
#include "torture/scratch_sql.hpp"
#include "torture/scratch_tables.hpp"
#include "torture/transfer_statements.hpp"

namespace txinbox::torture {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds short_pause{2};
constexpr milliseconds crossing_pause{5};

}  // namespace

void die() {
  ::kill(::getpid(), SIGKILL);
  while (true) ::pause();
}

void TransferHandler::operator()(soci::session& sql, Delivery& delivery) {
  const Arrival& arrival = assignment_.arrivals.at(delivery.index());
  const KeyPlan key = plan_.key(arrival.key);
  if (delivery.message().business_key != key.business_key) {
    throw WrongMessage("a handler got another message than the one of its index");
  }
  behave(sql, delivery, key, conduct_for(arrival, key, delivery.attempt()));
  die_if_told(plan_, assignment_, delivery.index());
}

Conduct TransferHandler::conduct_for(const Arrival& arrival, const KeyPlan& key, int attempt) const {
  if (is_deployed_ && arrival.key < assignment_.repaired_below) return Conduct::honest;
  if (is_deployed_ && fails_until_repair(plan_.seed(), arrival.key)) {
    return (arrival.copy + arrival.tries) % 2 == 0 ? Conduct::throws_first : Conduct::throws_last;
  }
  return conduct_of(plan_.seed(), arrival, key.is_hot, attempt);
}

void TransferHandler::behave(soci::session& sql, Delivery& delivery, const KeyPlan& key, Conduct conduct) {
  const auto no_pause = milliseconds(0);
  const HandlerScene scene{.sql = sql,
                           .write = fmt::format("update {} set touched = touched + 1 where id = {}", account_table,
                                                std::min(key.transfer.from, key.transfer.to)),
                           .failing_write = fmt::format("insert into {} (id, balance, touched) values ({}, 0, 0)",
                                                        account_table, std::min(key.transfer.from, key.transfer.to))};
  const auto plan_failure = [&] { is_failure_planned_[delivery.index()] = true; };
  switch (conduct) {
    case Conduct::honest:
      return write(sql, delivery, key, false, no_pause);
    case Conduct::slow:
      return write(sql, delivery, key, false, short_pause);
    case Conduct::crosses:
      return write(sql, delivery, key, true, crossing_pause);
    case Conduct::holds_locks:
      return write(sql, delivery, key, false, hold_locks_for_);
    case Conduct::uses_savepoint:
      misbehave("uses a savepoint of its own", scene);
      return write(sql, delivery, key, false, no_pause);
    case Conduct::throws_first:
      plan_failure();
      throw PlannedFailure("before its SQL");
    case Conduct::throws_last:
      plan_failure();
      write(sql, delivery, key, false, no_pause);
      throw PlannedFailure("after its SQL");
    case Conduct::swallows_error:
      plan_failure();  // on PostgreSQL, where the error ends the transaction
      misbehave("swallows an SQL error", scene);
      return go_on(sql, delivery, key);
    case Conduct::swallows_deadlock:
      plan_failure();
      try {
        touch(sql, key.transfer);
      } catch (const soci::soci_error&) {
        count(std::current_exception(), met_);
      }
      return go_on(sql, delivery, key);
    case Conduct::rolls_back_and_throws:
      plan_failure();
      write(sql, delivery, key, false, no_pause);
      misbehave("calls rollback()", scene);
      throw PlannedFailure("after a rollback of its own");
    case Conduct::rolls_back_and_begins:
      plan_failure();
      misbehave("rolls back and begins again", scene);
      return write(sql, delivery, key, false, no_pause);
    case Conduct::closes_session:
      plan_failure();
      write(sql, delivery, key, false, no_pause);
      return misbehave("closes the session", scene);
  }
}

/// Does all of the work after an ignored error. On PostgreSQL, an error aborts the transaction: the work fails as well,
/// and that error is ignored, too. On other databases, an error of the work is thrown, because the handler would commit
/// only half of it.
void TransferHandler::go_on(soci::session& sql, Delivery& delivery, const KeyPlan& key) {
  try {
    write(sql, delivery, key, false, milliseconds(0));
  } catch (const soci::soci_error&) {
    if (!scratch_sql_of(backend::database_of(sql)).error_ends_transaction) throw;
  }
}

/// Locks the two accounts, the one with the higher number first.
void TransferHandler::touch(soci::session& sql, const Transfer& transfer) {
  const std::string update = std::string("update ") + account_table + " set touched = touched + 1 where id = :id";
  for (const int id : {std::max(transfer.from, transfer.to), std::min(transfer.from, transfer.to)}) {
    sql << update, soci::use(id);
    std::this_thread::sleep_for(crossing_pause);
  }
}

void TransferHandler::write(soci::session& sql, Delivery& delivery, const KeyPlan& key, bool descending,
                            milliseconds pause) {
  TransferStatements* prepared = key.is_prepared ? &delivery.per_connection<TransferStatements>(sql) : nullptr;
  const Transfer& transfer = key.transfer;
  const bool takes_first = (transfer.from < transfer.to) != descending;
  for (const bool takes : {takes_first, !takes_first}) {
    const int account = takes ? transfer.from : transfer.to;
    const std::int64_t amount = takes ? -transfer.amount : transfer.amount;
    prepared != nullptr ? prepared->add(account, amount) : add(sql, account, amount);
    if (pause > milliseconds(0)) std::this_thread::sleep_for(pause);
  }
  const std::string run = names_.next();
  const std::string& business_key = delivery.message().business_key;
  prepared != nullptr ? prepared->enter(run, business_key, transfer) : enter(sql, run, business_key, transfer);
  if (adds_messages_) add_messages(sql, key, run);
  if (key.stores) delivery.store(run);
}

void die_if_told(const Plan& plan, const Assignment& assignment, std::size_t index) {
  if (index + 1 != assignment.arrivals.size()) return;
  if (assignment.death == Death::in_handler) die();
  if (assignment.death == Death::near_commit) {
    const auto after = std::chrono::microseconds(Dice(plan.seed(), {3, assignment.number}).below(2'000));
    std::thread([after] {
      std::this_thread::sleep_for(after);
      die();
    }).detach();
  }
}

}  // namespace txinbox::torture
