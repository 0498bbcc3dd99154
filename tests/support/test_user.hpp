#pragma once

#include <string>

#include <soci/soci.h>
#include <txinbox/pool.hpp>

#include "base/token.hpp"
#include "support/test_database.hpp"

namespace txinbox::test {

/// A user of the server with only the privileges that the test grants.
class User {
 public:
  explicit User(const TestDatabase& db)
      : db_(db),
        name_("txinbox_" + detail::Token::random().hex().substr(0, 12)),
        password_(detail::Token::random().hex()) {
    if (on_mysql()) {
      db_.run("create user " + name_ + " identified by '" + password_ + "'");
    } else {
      db_.run("create role " + name_ + " login password '" + password_ + "'");
    }
  }
  ~User() {
    try {
      drop();
    } catch (const soci::soci_error&) {  // the test has killed the server
    }
  }
  User(const User&) = delete;
  User& operator=(const User&) = delete;

  /// `privileges`: such as "select, insert on txinbox_consumed_message".
  void grant(const std::string& privileges) const { db_.run("grant " + privileges + " to " + name_); }
  void revoke(const std::string& privileges) const { db_.run("revoke " + privileges + " from " + name_); }

  std::string url() const {
    const std::string& admin = db_.url();
    return admin.substr(0, admin.find("//") + 2) + name_ + ":" + password_ + admin.substr(admin.find('@'));
  }

  Pool pool() const { return open_pool(url(), {.connections = 1}); }

 private:
  void drop() const {
    if (on_mysql()) {
      db_.run("drop user " + name_);
      return;
    }
    db_.run("reassign owned by " + name_ + " to current_user");
    db_.run("drop owned by " + name_);
    db_.run("drop role " + name_);
  }

  const TestDatabase& db_;
  std::string name_, password_;
};

inline std::string schema_of(const TestDatabase& db) {
  return db.text(on_mysql() ? "select database()" : "select current_schema()");
}

/// The privileges that a service needs, from docs/operations/migrations.md.
inline void grant_service(const User& user, const TestDatabase& db) {
  const std::string schema = schema_of(db);
  if (on_postgresql()) user.grant("usage on schema " + schema);
  user.grant("select, insert, update on " + schema + ".txinbox_consumed_message");
  user.grant("select on " + schema + ".txinbox_schema");
  user.grant("select, insert, update, delete on " + schema + ".txinbox_failed_message");
  user.grant("select, insert, update on " + schema + ".txinbox_conflicting_message");
  user.grant("select, insert, update on " + schema + ".txinbox_consumer");
}

}  // namespace txinbox::test
