#pragma once

/// @file
/// Leases in Redis: a store for `LeaseConsumer`.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/finding.hpp>
#include <txinbox/lease_store.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

/// Where the Redis server is, and how it is used.
struct RedisOptions {
  std::string host = "localhost";  ///< The name or address of the server.
  std::uint16_t port = 6379;       ///< Its port. The connection is not encrypted.
  std::string user = {};           ///< The user (ACL). Empty: the user "default".
  std::string password = {};       ///< The user's password. It is in no error text. Empty: no authentication.
  int database = 0;                ///< The number of the database, from 0.

  /// How the names of all keys begin. A key is called `PREFIX:LENGTH:CONSUMER:KEY`. LENGTH is the length of the
  /// consumer's name in bytes. A part of the prefix after a colon must not be a number, because it could be taken for
  /// this length: `shop:no7` is valid, `shop:7` is not.
  std::string prefix = "txinbox";

  /// How long Redis keeps a key after its last change, from 1 s to 100 years. Keep it longer than a message can be
  /// delivered again: a message that comes later runs again. A key lives at least as long as two leases.
  std::chrono::milliseconds keep = std::chrono::hours(24);

  /// How long to wait for the connection and for each reply, from 1 ms to a day.
  std::chrono::milliseconds timeout{500};

  /// How many replicas must have each step before it counts. 0: none. If fewer confirm it, the step throws a transient
  /// `LeaseStoreError`, and nothing is acknowledged. The step is not undone. It narrows what a failover can forget,
  /// but does not close it: the replica that is promoted can be another one.
  int wait_replicas = 0;

  /// How long to wait for these replicas, from 1 ms to a day.
  std::chrono::milliseconds replica_timeout{200};

  /// The most connections that are kept while they are not in use. More are opened if more threads need one at once.
  std::size_t idle_connections = 8;
};

/// Reads the options from a URL: `redis://USER@HOST:PORT/DATABASE`. All but the host can be left out.
///
/// Parameters: `prefix`, `keep` (seconds), `timeout` (milliseconds), `wait_replicas`, `replica_timeout` (milliseconds).
/// The password is taken from the environment variable TXINBOX_REDIS_PASSWORD.
///
/// @errors `Error` invalid_argument for what is not valid, for a password in the URL, and for `rediss://`: this
///         component has no TLS. The text does not hold the URL.
RedisOptions redis_options_from_url(std::string_view url);

/// Opens a store of leases in Redis, for the constructor of `LeaseConsumer`. It connects at the first step.
///
/// **What Redis can forget.** The handler runs at least once, and at most one call completes its message, as long as
/// Redis keeps what it has confirmed. After an eviction, a power cut without `appendfsync always`, or a failover, the
/// handler of an acknowledged message can run again. `diagnose_redis` names the settings that allow this.
///
/// Each step is one script with one key, and uses the server's clock. If the reply to a step is lost, the store
/// connects again and asks again; the script finds the token of its own call.
///
/// @blocking a step waits for its reply. After a lost reply it connects again and waits once more. A new connection
///           waits for the server to accept it, and for up to three replies. Each of these waits takes at most
///           `timeout`, and with `wait_replicas` also `replica_timeout`. Finding the address of a name takes as long as
///           the system allows.
/// @errors   `Error` invalid_argument for the options. The steps throw:
/// - `Error` invalid_argument if the server has no database with this number;
/// - `LeaseStoreError` transient for a lost connection, a time-out, a server that starts, is busy or is read-only, and
///   for too few replicas;
/// - `LeaseStoreError` permanent if the server has no memory or cannot write to its disk, and for other errors of it;
/// - `Error` access_refused if the user, the password or a right is refused;
/// - `Error` unsupported_database for a Redis Cluster;
/// - `Error` unknown_state for a key that this library did not make;
/// - `Error` forked in a child of `fork`.
///
/// @threads  any number may use the store.
std::shared_ptr<LeaseStore> open_redis(const RedisOptions& options);

/// As `open_redis(redis_options_from_url(url))`.
///
/// @errors `Error` invalid_argument for the URL.
std::shared_ptr<LeaseStore> open_redis(std::string_view url);

/// Finds what makes this server forget leases and completed messages, or refuse to serve: for `txinbox doctor`.
///
/// @blocking for the connection and up to six replies, each at most `RedisOptions::timeout`.
/// @errors   as the steps of the store of `open_redis`.
std::vector<Finding> diagnose_redis(const RedisOptions& options);

TXINBOX_API_END
}  // namespace txinbox
