#include "torture/transfer_statements.hpp"

#include "torture/scratch_tables.hpp"

namespace txinbox::torture {
namespace {

std::string add_sql() { return std::string("update ") + account_table + " set balance = balance + :n where id = :id"; }

std::string enter_sql() {
  return std::string("insert into ") + ledger_table +
         " (run, business_key, account_from, account_to, amount) values (:run, :key, :account_from, :account_to, :n)";
}

}  // namespace

void add(soci::session& sql, int account, std::int64_t amount) {
  const long long n = amount;
  sql << add_sql(), soci::use(n), soci::use(account);
}

void enter(soci::session& sql, const std::string& run, const std::string& business_key, const Transfer& transfer) {
  const long long n = transfer.amount;
  sql << enter_sql(), soci::use(run), soci::use(business_key), soci::use(transfer.from), soci::use(transfer.to),
      soci::use(n);
}

void enter_fenced(soci::session& sql, const std::string& run, const std::string& business_key, const Transfer& transfer,
                  const Fencing& fencing) {
  enter(sql, run, business_key, transfer);
  const long long fence = fencing.fence;
  const long long place = fencing.place;
  sql << std::string("update ") + ledger_table + " set fence = :f, place = :p where run = :run and business_key = :key",
      soci::use(fence), soci::use(place), soci::use(run), soci::use(business_key);
}

TransferStatements::TransferStatements(soci::session& sql)
    : add_((sql.prepare << add_sql(), soci::use(amount_), soci::use(account_))),
      enter_((sql.prepare << enter_sql(), soci::use(run_), soci::use(key_), soci::use(account_), soci::use(to_),
              soci::use(amount_))) {}

void TransferStatements::add(int account, std::int64_t amount) {
  account_ = account;
  amount_ = amount;
  add_.execute(true);
}

void TransferStatements::enter(const std::string& run, const std::string& business_key, const Transfer& transfer) {
  run_ = run;
  key_ = business_key;
  account_ = transfer.from;
  to_ = transfer.to;
  amount_ = transfer.amount;
  enter_.execute(true);
}

}  // namespace txinbox::torture
