#pragma once

/// @file
/// The interface of a store in which a `LeaseConsumer` keeps its leases instead of the database.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <txinbox/result.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

/// The values that are the same in all steps of one `consume` call. The views are valid during the step.
struct LeaseRequest {
  std::string_view consumer;               ///< The consumer's name: 1 to 64 bytes.
  std::string_view business_key;           ///< The message's key: 1 to 255 bytes.
  std::string_view message_id;             ///< The broker's id: at most 255 bytes. For operators only.
  std::string_view content_hash;           ///< The SHA-256 of the content, 64 hexadecimal digits. Empty if there is no
                                           ///< content.
  std::string_view token;                  ///< 32 hexadecimal digits that identify this call and no other.
  std::string_view owner;                  ///< Host and process. For operators only.
  std::chrono::milliseconds lease{0};      ///< The length of the lease, from 1 ms to 24 days.
  std::chrono::milliseconds valid_for{0};  ///< As `Message::valid_for`. Zero: a consumed key stays consumed.
};

/// The reply of a store to a call that asked for a lease.
struct LeaseAnswer {
  Claim claim;                             ///< It says which of the other members have a value.
  std::int64_t fence = 0;                  ///< For claimed: a number greater than the fences of all earlier leases of
                                           ///< the key.
  bool taken_over = false;                 ///< For claimed: the lease of another call had expired.
  std::chrono::milliseconds remaining{0};  ///< For claimed and in_progress: the time until the lease expires.
  std::chrono::milliseconds age{0};        ///< For already_consumed: the time since the completion.
  std::optional<std::string> result = {};  ///< For already_consumed: what the handler stored.
};

/// An attempt that failed.
struct LeaseFailure {
  bool counts;              ///< Whether the failure counts for `max_attempts`.
  bool rejected;            ///< Whether to park the message at once.
  int max_attempts;         ///< The message is parked when it has failed this often. 0: never.
  std::string error_class;  ///< The result of the function `error_class`. For operators only.
};

/// Where a `LeaseConsumer` keeps its leases.
///
/// Each step is atomic in the store and uses only the store's own clock. A step after the claim changes nothing unless
/// the token and the fence of the key are those of the request. If the reply to a step is lost, the caller repeats the
/// step with the same arguments. The repeated step must then find its own token, and give the reply that was lost.
///
/// A step throws `LeaseStoreError` if it failed, or if nobody knows whether it took effect. If somebody must fix the
/// set-up, it throws `Error` with a code for which `action_for` says `stop`.
///
/// @threads any number may call each member.
class LeaseStore {
 public:
  virtual ~LeaseStore() = default;

  /// A store is shared and cannot be copied.
  LeaseStore(const LeaseStore&) = delete;

  /// A store is shared and cannot be copied.
  LeaseStore& operator=(const LeaseStore&) = delete;

  /// Asks for the lease.
  ///
  /// The first of these rules that applies decides:
  ///
  /// 1. If the store does not know the key, it grants the lease.
  /// 2. If the key was consumed at least `valid_for` ago by another call, and `valid_for` is not zero, it grants the
  ///    lease and forgets the result.
  /// 3. If the key has this call's token, and its lease has not expired, it grants the rest of the lease.
  /// 4. If both content hashes are not empty and differ, it is a conflict, also if the lease has expired or was
  ///    released: the handler may have worked with the other content.
  /// 5. If the key was consumed or is parked, it says so.
  /// 6. If the lease has expired or was released, it grants the lease. An empty content hash then leaves the key's
  ///    hash as it was.
  /// 7. Otherwise another call has the lease: it is in progress.
  virtual LeaseAnswer claim(const LeaseRequest& request) = 0;

  /// Extends the lease to its full length from now. Returns false if the lease is lost.
  virtual bool renew(const LeaseRequest& request, std::int64_t fence) = 0;

  /// Completes the message, and stores the result. Returns false if the lease is lost.
  virtual bool complete(const LeaseRequest& request, std::int64_t fence, const std::optional<std::string>& result) = 0;

  /// Counts the failure, then parks the message or releases its lease. Returns whether the message is now parked. If
  /// the lease is lost, it changes nothing and returns false.
  virtual bool fail(const LeaseRequest& request, std::int64_t fence, const LeaseFailure& failure) = 0;

 protected:
  LeaseStore() = default;
};

TXINBOX_API_END
}  // namespace txinbox
