#pragma once

#include <span>
#include <string>

#include <soci/soci.h>
#include <txinbox/message.hpp>

#include "support/effects.hpp"

namespace txinbox::test {

struct Subject;

/// How often a message's handler took effect, by the rows that it left. No constraint refuses a second
/// time: it would be seen.
struct Rows {
  long long first = 0;
  long long second = 0;

  friend bool operator==(const Rows&, const Rows&) = default;
};

/// A migrated database with a table of effects, and what must hold of it when a case is over.
class FaultDatabase : public EffectDatabase {
 public:
  FaultDatabase();

  Rows rows_of(const Message&) const;

  using EffectDatabase::claim_of;
  std::string claim_of(const Message& message) const { return claim_of(message.business_key); }

  /// Its state, and until when its lease is.
  std::string lease_of(const Message&) const;

  /// What its handler stored.
  std::string stored_for(const Message&) const;

  /// Each message has taken effect, its claim says so and has what the handler stored: once; or, under a
  /// lease, once or more often, last by the lease that completed it.
  void check_promise(const Subject&, std::span<const Message>) const;

  /// As if the time of every lease had passed.
  void let_leases_end() const;

  /// What a service gave back or left: no transaction is open on the session, it commits by itself, and
  /// its settings are those of a new one.
  void check_clean(soci::session&, const std::string& settings_when_new) const;

  /// No session but our own has a transaction open, or soon has none: a server takes a moment to see
  /// that a client has gone.
  void check_nothing_open() const;

  /// What the server does to the session whose client speaks from this port. False: there is none yet.
  bool end_session(int client_port) const;
  bool cancel_statement(int client_port) const;

 private:
  std::string session_from(int client_port) const;
};

}  // namespace txinbox::test
