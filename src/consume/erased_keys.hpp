#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>

#include <txinbox/message.hpp>
#include <txinbox/result.hpp>
#include <txinbox/version.hpp>

#include "backend/session.hpp"
#include "message/erased_key.hpp"
#include "pool/session_provider.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The keys of a consumer's erased messages, as they were read once.
///
/// `erase` replaces a key by its hash, so an insert of the key itself no longer meets a row. Why no message runs again:
///
/// - `erase` commits the erased key, waits for `erasure_wait`, and only then removes the row of the key.
/// - A delivery takes a reading that began at most `erased_keys_read_every` ago. If it finds the key there, it does not
///   run the message.
/// - If it does not find the key, the erased key was committed after the begin of the reading, or never. Then the row
/// of
///   the key stays until `erasure_wait` after the begin of the reading, or longer. An insert until then meets this row.
/// - After the insert, the delivery makes sure that no more than `erased_keys_valid_for` has passed since the begin of
///   the same reading, which is shorter. Otherwise it undoes the insert, and takes another reading.
///
/// This needs clocks that run equally fast, within a third, in the process of the consumer and in that of `erase`.
class ErasedKeyReading {
 public:
  using Clock = std::chrono::steady_clock;

  /// Reads the keys. No transaction may be open.
  ///
  /// Errors: a database error as it was.
  ErasedKeyReading(backend::Session&, const std::string& consumer);

  /// The result of a message whose key was erased; none if it was not.
  std::optional<Result> find(const std::string& consumer, const Message& message) const;

  /// Whether a claim that was inserted before this call, and whose key was not found, is safe.
  bool is_current() const noexcept { return Clock::now() - begin_ < erased_keys_valid_for; }

  /// Whether the next delivery needs another reading.
  bool is_old() const noexcept { return Clock::now() - begin_ >= erased_keys_read_every; }

 private:
  struct Entry {
    Outcome outcome;
    Clock::time_point since;
  };

  const Clock::time_point begin_ = Clock::now();
  std::unordered_map<std::string, Entry> entries_;
};

/// The latest reading, which the deliveries of a consumer share.
///
/// @threads any; while one thread reads, those that need the reading wait.
class ErasedKeys {
 public:
  using Reading = std::shared_ptr<const ErasedKeyReading>;

  /// Returns the latest reading, or a new one if that is old. Call it without a session.
  ///
  /// Errors: those of `SessionProvider::borrow`; a database error as it was.
  Reading read(SessionProvider& source, const std::string& consumer, const std::stop_token& stop);

  /// The same, on a session without a transaction.
  Reading read(backend::Session& session, const std::string& consumer);

 private:
  Reading latest() const;
  Reading take(backend::Session& session, const std::string& consumer);

  std::mutex reading_;
  mutable std::mutex mutex_;
  Reading latest_;  ///< Null before the first reading.
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
