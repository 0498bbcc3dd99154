#pragma once

/// @file
/// Where a `LeaseConsumer` keeps its leases if it does not keep them in the database: what such a store must do.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// What all steps of one `consume` call have in common. Its views are valid during the step.
struct LeaseRequest {
  std::string_view consumer;               ///< The consumer's name: 1 to 64 bytes.
  std::string_view business_key;           ///< The message's key: 1 to 255 bytes.
  std::string_view message_id;             ///< The broker's id: at most 255 bytes. For operators only.
  std::string_view content_hash;           ///< The SHA-256 of the content, 64 hexadecimal digits. Empty: none.
  std::string_view token;                  ///< 32 hexadecimal digits that identify this call and no other.
  std::string_view owner;                  ///< Host and process. For operators only.
  std::chrono::milliseconds lease{0};      ///< The length of the lease, from 1 ms to 24 days.
  std::chrono::milliseconds valid_for{0};  ///< As `Message::valid_for`. Zero: a consumed key stays consumed.
};

/// What a store found when it was asked for a lease.
enum class LeaseState {
  granted,      ///< This call has the lease.
  in_progress,  ///< Another call has it.
  consumed,     ///< An earlier call has completed the message.
  conflict,     ///< The key has the hash of another content.
  parked,       ///< The message failed too often or was rejected.
};

/// The answer of a store that was asked for a lease.
struct LeaseAnswer {
  LeaseState state;                        ///< It says which of the other members have a value.
  std::int64_t fence = 0;                  ///< For granted: greater than the fences of all earlier leases of the key.
  bool taken_over = false;                 ///< For granted: the lease of another call had expired.
  std::chrono::milliseconds remaining{0};  ///< For granted and in_progress: how long the lease still runs.
  std::chrono::milliseconds age{0};        ///< For consumed: the time since the completion.
  std::optional<std::string> result = {};  ///< For consumed: what the handler stored.
};

/// An attempt that failed.
struct LeaseFailure {
  bool counts;              ///< Whether the failure counts for `max_attempts`.
  bool rejected;            ///< Whether to park the message at once.
  int max_attempts;         ///< Park the message if it has failed as often as this. 0: never.
  std::string error_class;  ///< As the function `error_class`. For operators.
};

/// Where a `LeaseConsumer` keeps its leases.
///
/// Each step is atomic in the store and decides by the store's own clock. A step after the claim changes nothing unless
/// the key's token and fence are those of the request. If the reply to a step is lost, the caller asks again with the
/// same arguments. The step must then find its own token, and give the answer that was lost.
///
/// A step throws `LeaseStoreError` if it failed, or if it is not known whether it took effect. It throws `Error` with a
/// code for which `action_for` is `stop` if the set-up must be fixed.
///
/// @threads any number may call each member.
class LeaseStore {
 public:
  virtual ~LeaseStore() = default;

  /// A store is shared, and not copied.
  LeaseStore(const LeaseStore&) = delete;

  /// A store is shared, and not copied.
  LeaseStore& operator=(const LeaseStore&) = delete;

  /// Asks for the lease.
  ///
  /// - A key that the store does not know, whose lease has expired or was released, or that was consumed at least
  ///   `valid_for` ago if that is not zero: grants the lease.
  /// - A key that this call's token has: grants what is left of the lease.
  /// - Another content hash, with both not empty, in any other state: conflict.
  virtual LeaseAnswer claim(const LeaseRequest& request) = 0;

  /// Extends the lease to its full length from now. Returns false if it is lost.
  virtual bool renew(const LeaseRequest& request, std::int64_t fence) = 0;

  /// Completes the message, and stores the result. Returns false if the lease is lost.
  virtual bool complete(const LeaseRequest& request, std::int64_t fence, const std::optional<std::string>& result) = 0;

  /// Counts the failure, then parks the message or releases its lease. Returns whether the message is parked now.
  /// Changes nothing, and returns false, if the lease is lost.
  virtual bool fail(const LeaseRequest& request, std::int64_t fence, const LeaseFailure& failure) = 0;

 protected:
  LeaseStore() = default;
};

TXINBOX_NAMESPACE_END
}  // namespace txinbox
