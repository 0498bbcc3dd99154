// A batch has the results, rows, effects and events of one `consume` for each message, for generated mixtures.

#include <cstdint>
#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

#include "support/counts.hpp"
#include "support/mixture_database.hpp"

namespace txinbox::test {
namespace {

/// The number in an environment variable.
std::uint64_t number_in(const char* variable, std::uint64_t otherwise) {
  const char* const value = std::getenv(variable);
  return value == nullptr || *value == '\0' ? otherwise : std::stoull(value);
}

// TXINBOX_MIXTURES is the number of mixtures, and TXINBOX_MIXTURE the seed of the first one. So the message of a
// failure says how to repeat it.
TEST_CASE("a mixture of messages gives the same in batches as one by one") {
  const std::uint64_t first = number_in("TXINBOX_MIXTURE", 1);
  const std::uint64_t mixtures = number_in("TXINBOX_MIXTURES", 60);
  MixtureDatabase db;
  for (std::uint64_t seed = first; seed < first + mixtures; ++seed) {
    const Mixture mixture(seed);
    const auto check = [&](Way way, const std::string& expected) {
      const std::string found = db.consume(mixture, way);
      INFO("repeat with TXINBOX_MIXTURES=1 TXINBOX_MIXTURE=" << seed << ", in the way: " << to_string(way));
      REQUIRE(found == expected);
    };
    const std::string expected = db.consume(mixture, Way::one_by_one);
    for (const Way way :
         {Way::batch, Way::in_batches, Way::set, Way::set_in_batches, Way::pair, Way::pair_in_batches}) {
      check(way, expected);
    }
    if (seed % 4 == 1) check(Way::batch_on_session, db.consume(mixture, Way::one_by_one_on_session));
    // With `count_starts`, a batch ends at a transient error that outlives its retries.
    if (seed % 4 == 0 && !mixture.contains(Does::conflicts_in_database)) {
      check(Way::batch_counting_starts, db.consume(mixture, Way::one_by_one_counting_starts));
    }
  }
  count(mixtures, "mixtures");
}

}  // namespace
}  // namespace txinbox::test
