#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

namespace txinbox::test {

/// The act of a handler for one delivery of a mixture, after it has written its effect.
enum class Does {
  nothing,
  stores,             ///< It stores a result.
  throws,             ///< It throws an exception of its own.
  breaks_constraint,  ///< Its SQL violates a constraint.
  fails_at_commit,  ///< Its SQL violates a constraint that the database checks at the commit. Not on MariaDB and MySQL.
  stores_too_much,  ///< It stores a result that is too large.
  rejects,          ///< It throws `rejected`.
  refuses,          ///< It calls `Delivery::refuse`.
  postpones,        ///< It throws `RetryLater`.
  declared,         ///< It throws an error that `ConsumerOptions::is_transient` names.
  conflicts_in_database,  ///< Its SQL has a transient error. Not on SQLite.
  misuses,                ///< It throws an error for which `action_for` says `stop`.
  no_memory,              ///< It throws an error of the environment.
  environment_in_sql,     ///< Its SQL has an error of the environment. Not on SQLite.
  needs_first,            ///< It throws unless an effect of the first key is there.
};

/// One message of a mixture.
struct MixedMessage {
  Message message;  ///< Its `message_id` is unique in the mixture.
  Does does = Does::nothing;
  int rounds = 0;  ///< In later rounds the handler does nothing else than to write its effect.
};

/// Messages of all kinds, and the options with which they are consumed.
struct Mixture {
  std::uint64_t seed = 0;
  std::vector<MixedMessage> messages;
  std::vector<std::pair<std::string, std::string>> rows;  ///< Keys that have a row in this state before.
  OnFailure on_failure = OnFailure::stop;
  ConsumerOptions options;
  int rounds = 1;        ///< In each round after the first, the broker delivers again what was not acknowledged.
  std::size_t size = 1;  ///< Of the batches in the way `in_batches`.

  explicit Mixture(std::uint64_t seed);

  bool contains(Does) const;

  /// Whether the broker also delivers this message again in this round, although it was acknowledged.
  bool repeats(std::size_t index, int round) const;
};

/// Behaves so in the handler of this delivery. `consumer` is the name of its consumer.
void behave(Does, soci::session&, Delivery&, const std::string& consumer);

}  // namespace txinbox::test
