#pragma once

#include <cstdint>
#include <string>

#include <soci/soci.h>

#include "torture/plan.hpp"

namespace txinbox::torture {

// The SQL of a transfer: the change of an account, and the line in the ledger. The ledger accepts a second line of a
// key, so that the checker sees a doubled effect.

void add(soci::session& sql, int account, std::int64_t amount);
void enter(soci::session& sql, const std::string& run, const std::string& business_key, const Transfer& transfer);

/// For a transfer under a lease: its fence, and its number among the effects of its key, from 1.
struct Fencing {
  std::int64_t fence = 0;
  std::int64_t place = 0;
};

void enter_fenced(soci::session& sql, const std::string& run, const std::string& business_key, const Transfer& transfer,
                  const Fencing& fencing);

/// The same, prepared on a connection.
class TransferStatements {
 public:
  explicit TransferStatements(soci::session& sql);

  void add(int account, std::int64_t amount);
  void enter(const std::string& run, const std::string& business_key, const Transfer& transfer);

 private:
  long long amount_ = 0;
  int account_ = 0;
  int to_ = 0;
  std::string run_;
  std::string key_;
  soci::statement add_;
  soci::statement enter_;
};

}  // namespace txinbox::torture
