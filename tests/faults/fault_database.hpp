#pragma once

#include <span>
#include <string>

#include <soci/soci.h>
#include <txinbox/message.hpp>

#include "support/effects.hpp"

namespace txinbox::test {

struct Subject;

/// How often a message's handler took effect: the count of each of its two rows. No constraint refuses a second effect.
struct Rows {
  long long first = 0;
  long long second = 0;

  friend bool operator==(const Rows&, const Rows&) = default;
};

/// A migrated database with a table of effects, and the checks at the end of a case.
class FaultDatabase : public EffectDatabase {
 public:
  FaultDatabase();

  Rows rows_of(const Message&) const;

  using EffectDatabase::claim_of;
  std::string claim_of(const Message& message) const { return claim_of(message.business_key); }

  /// The state of its claim, and the end of its lease.
  std::string lease_of(const Message&) const;

  /// What its handler stored.
  std::string stored_for(const Message&) const;

  /// Checks that each message took effect once, that its claim is consumed, and that the claim has the stored result.
  /// Under a lease it may have taken effect more than once, the last time under the lease that completed it.
  void check_promise(const Subject&, std::span<const Message>) const;

  /// Makes every lease expire.
  void let_leases_end() const;

  /// Checks a session that a service has used: no transaction is open, autocommit is on, and its settings are those of
  /// a new session.
  void check_clean(soci::session&, const std::string& settings_when_new) const;

  /// Checks that soon no other session has an open transaction. A server needs some time to notice that a client has
  /// disconnected.
  void check_nothing_open() const;

  /// Ends the session whose client uses this port, or cancels its statement. False if there is none yet.
  bool end_session(int client_port) const;
  bool cancel_statement(int client_port) const;

 private:
  std::string session_from(int client_port) const;
};

}  // namespace txinbox::test
