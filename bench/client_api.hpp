#pragma once

#include <memory>
#include <span>
#include <string>

#include <txinbox/message.hpp>
#include <txinbox/outbox.hpp>

namespace soci {
class session;
}

namespace txinbox::bench {

/// The database's own client library, as a careful programmer uses it: with prepared statements, one call for each
/// step, and no guard. Statements are prepared at their first use.
///
/// Errors: `std::runtime_error`, which ends the run.
class ClientApi {
 public:
  virtual ~ClientApi() = default;

  virtual void begin() = 0;

  /// Inserts one claim. Returns false if the key exists already.
  virtual bool claim(const std::string& key) = 0;

  /// Inserts the claims of messages in the fastest way. All messages must be new, and sorted by key.
  virtual void claim_all(std::span<const Message> sorted) = 0;

  /// Takes the lease of a new key, in a transaction of its own.
  virtual void lease(const std::string& key) = 0;

  /// Completes it, in a transaction of its own.
  virtual void complete(const std::string& key) = 0;

  /// The business work: adds 1 to one row of `bench_account`.
  virtual void update(int row) = 0;

  /// The same for several rows, each once, with one statement.
  virtual void update_all(std::span<const int> rows) = 0;

  /// Inserts a message with an id into the outbox. Its part is always 0.
  virtual void insert_outgoing(const OutgoingMessage& message) = 0;

  virtual void commit() = 0;
  virtual void roll_back() = 0;

  /// Makes the shortest round trip to the server. Does nothing on SQLite.
  virtual void ping() = 0;
};

/// Returns an object that uses the connection of this session. The session must outlive it.
std::unique_ptr<ClientApi> client_api(soci::session&);

std::unique_ptr<ClientApi> sqlite3_api(soci::session&);
std::unique_ptr<ClientApi> mysql_api(soci::session&);
std::unique_ptr<ClientApi> postgresql_api(soci::session&);

}  // namespace txinbox::bench
