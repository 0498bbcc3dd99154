#pragma once

#include <memory>
#include <string>

#include <soci/soci.h>
#include <txinbox/pool.hpp>

#include "support/batch_mixture.hpp"
#include "support/test_database.hpp"

namespace txinbox::test {

/// The ways to consume a mixture.
enum class Way {
  one_by_one,
  batch,
  in_batches,
  set,
  set_in_batches,
  pair,
  pair_in_batches,
  one_by_one_on_session,
  batch_on_session,
  one_by_one_counting_starts,
  batch_counting_starts,
};

std::string to_string(Way);

/// The database of the mixtures. All mixtures share it: each way of each mixture has a consumer name of its own.
class MixtureDatabase : public TestDatabase {
 public:
  MixtureDatabase();

  /// Consumes the mixture in this way. Returns what can be observed, one fact in a line: results, rows, effects and
  /// events.
  std::string consume(const Mixture&, Way);

 private:
  /// `with_duplicates`: also the number of duplicates. A consumer on a session does not write all of them.
  std::string rows_of(const std::string& consumer, bool with_duplicates);

  std::unique_ptr<soci::session> sql_ = session();
  std::unique_ptr<soci::session> own_ = session();  ///< Of a consumer on a session.
  Pool pool_;
};

}  // namespace txinbox::test
