#pragma once

#include <span>
#include <string>

#include <soci/soci.h>
#include <txinbox/message.hpp>

#include "support/effects.hpp"

namespace txinbox::test {

struct Subject;

/// How often a message's handler took effect: how often each of its two rows exists. The table has no constraint that
/// would refuse a second effect.
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

  /// The rows of a message that took effect.
  static Rows effect_of(const Subject&);

  using EffectDatabase::claim_of;
  std::string claim_of(const Message& message) const { return claim_of(message.business_key); }

  /// The state of the message's claim, and the end of its lease.
  std::string lease_of(const Message&) const;

  /// The result that the message's handler stored.
  std::string stored_for(const Message&) const;

  /// Checks that each message took effect once, that its claim is consumed, and that the claim has the stored result.
  /// Under a lease, a message may have taken effect more than once, but its last effect must be of the lease that
  /// completed it.
  void check_promise(const Subject&, std::span<const Message>) const;

  /// Makes every lease expire.
  void let_leases_end() const;

  /// Checks a session that a service has used: no transaction is open, autocommit is on, and the settings are those of
  /// a new session.
  void check_clean(soci::session&, const std::string& settings_when_new) const;

  /// Checks that no other session has an open transaction. Waits for this, because a server needs some time to notice
  /// that a client has disconnected.
  void check_nothing_open() const;

  /// Ends the session whose client uses this port, or cancels its statement. Returns false if no session uses the port
  /// yet.
  bool end_session(int client_port) const;
  bool cancel_statement(int client_port) const;

 private:
  std::string session_from(int client_port) const;
};

}  // namespace txinbox::test
