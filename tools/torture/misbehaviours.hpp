#pragma once

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <string_view>

#include <soci/soci.h>

namespace txinbox::torture {

/// Ignores a database error, as a careless handler does.
template <class F>
void quietly(F&& f) {
  try {
    f();
  } catch (const soci::soci_error&) {  // NOLINT(bugprone-empty-catch)
  }
}

/// The session and the SQL that a misbehaving handler can use.
struct HandlerScene {
  soci::session& sql;
  std::string write;          ///< A statement that writes a row.
  std::string failing_write;  ///< A statement that violates a constraint.
};

struct Misbehaviour {
  std::string_view name;
  void (*act)(const HandlerScene&);
};

/// Actions of a handler on the transaction that txinbox has begun for it. The storm, the tests of the guard and the
/// fault tests run the same actions. `guard_cases` defines how each of them ends.
inline constexpr std::array misbehaviours{
    Misbehaviour{"uses a savepoint of its own",
                 [](const HandlerScene& h) {
                   h.sql << "savepoint mine";
                   h.sql << h.write;
                   h.sql << "rollback to savepoint mine";
                   h.sql << "release savepoint mine";
                 }},
    Misbehaviour{"swallows an SQL error", [](const HandlerScene& h) { quietly([&] { h.sql << h.failing_write; }); }},
    Misbehaviour{"calls commit()", [](const HandlerScene& h) { quietly([&] { h.sql.commit(); }); }},
    Misbehaviour{"lets the error of commit() through", [](const HandlerScene& h) { h.sql.commit(); }},
    Misbehaviour{"calls rollback()", [](const HandlerScene& h) { quietly([&] { h.sql.rollback(); }); }},
    Misbehaviour{"calls begin()", [](const HandlerScene& h) { quietly([&] { h.sql.begin(); }); }},
    Misbehaviour{"commits a soci::transaction",
                 [](const HandlerScene& h) {
                   quietly([&] {
                     soci::transaction inner(h.sql);
                     inner.commit();
                   });
                 }},
    Misbehaviour{"rolls back a soci::transaction",
                 [](const HandlerScene& h) { quietly([&] { const soci::transaction inner(h.sql); }); }},
    Misbehaviour{"rolls back and begins again",
                 [](const HandlerScene& h) {
                   quietly([&] { h.sql.rollback(); });
                   quietly([&] { h.sql.begin(); });
                 }},
    Misbehaviour{"commits and begins again",
                 [](const HandlerScene& h) {
                   quietly([&] { h.sql.commit(); });
                   quietly([&] { h.sql.begin(); });
                 }},
    Misbehaviour{"reconnects", [](const HandlerScene& h) { h.sql.reconnect(); }},
    Misbehaviour{"closes the session", [](const HandlerScene& h) { h.sql.close(); }},
};

/// Errors: those of the action; `std::logic_error` for a name that is not in the list.
inline void misbehave(std::string_view name, const HandlerScene& scene) {
  const auto* const found = std::ranges::find(misbehaviours, name, &Misbehaviour::name);
  if (found == misbehaviours.end()) throw std::logic_error("no misbehaviour has this name: " + std::string(name));
  found->act(scene);
}

}  // namespace txinbox::torture
