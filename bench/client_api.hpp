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

/// The database's own client interface, as a careful programmer uses it: prepared statements, one call
/// for each step, no guard. Statements are prepared when they are first needed.
///
/// What fails throws `std::runtime_error` and fails the run.
class ClientApi {
 public:
  virtual ~ClientApi() = default;

  virtual void begin() = 0;

  /// Inserts one claim. False when the key is there already.
  virtual bool claim(const std::string& key) = 0;

  /// Inserts the claims of messages that are all new, in the order of their keys, in the fastest way.
  virtual void claim_all(std::span<const Message> sorted) = 0;

  /// The business work: adds 1 to one row of `bench_account`.
  virtual void update(int row) = 0;

  /// The same for several rows, each once, with one statement.
  virtual void update_all(std::span<const int> rows) = 0;

  /// Inserts a message with an id into the outbox. Its part is always 0.
  virtual void insert_outgoing(const OutgoingMessage& message) = 0;

  virtual void commit() = 0;
  virtual void roll_back() = 0;

  /// The shortest round trip to the server; nothing on SQLite.
  virtual void ping() = 0;
};

/// On the connection of this session, which must outlive it.
std::unique_ptr<ClientApi> client_api(soci::session&);

std::unique_ptr<ClientApi> sqlite3_api(soci::session&);
std::unique_ptr<ClientApi> mysql_api(soci::session&);
std::unique_ptr<ClientApi> postgresql_api(soci::session&);

}  // namespace txinbox::bench
