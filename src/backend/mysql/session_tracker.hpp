#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "backend/mysql/native.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// Knows which settings of the session a user has changed. The server reports changes in its replies (session
/// tracking), so this costs no round trip. The server gives the names of changed variables. For temporary tables, user
/// variables and prepared statements it reports only that something has changed.
///
/// It is active only with MariaDB's client library, with a server that reports changes, and without a proxy that drops
/// the reports.
class MysqlSessionTracker {
 public:
  MysqlSessionTracker() = default;
  MysqlSessionTracker(const MysqlSessionTracker&) = delete;
  MysqlSessionTracker& operator=(const MysqlSessionTracker&) = delete;

  /// Asks the server for reports. The connection then calls this object, so call `end` before this object is destroyed.
  void begin(MYSQL*);
  void end(MYSQL*) noexcept;

  /// Remembers the present values of the variables, which `undo` restores. The caller restores the variables in
  /// `others`.
  void remember(std::span<const std::string_view> others);

  bool active() const noexcept { return active_; }

  /// Whether a variable was changed. Autocommit does not count, because each guarded transaction changes it.
  bool has_changed_variables() const noexcept { return !changed_.empty() || lost_; }

  /// Whether something other than a variable may have been changed. A reply that names a variable hides such a change.
  bool may_have_other_changes() const noexcept { return other_changes_ || has_changed_variables(); }

  /// Whether the server's last report says that autocommit is on. If autocommit was switched on and the last report
  /// says otherwise, somebody has ended the tracking.
  bool is_heard() const noexcept { return heard_; }

  /// Call it before a transaction begins. Afterwards, `was_autocommit_on` says whether the server has reported since
  /// then that autocommit is on.
  void begin_transaction() noexcept { was_autocommit_on_ = false; }
  bool was_autocommit_on() const noexcept { return was_autocommit_on_; }

  /// Whether reports may be missing, because somebody has changed what the server reports, or because there was no
  /// memory.
  bool is_lost() const noexcept;

  /// Call it before the statement with `assignments`, and `end_undo` after it. `end_undo` returns false if the server
  /// did not report the assignments.
  void begin_undo() noexcept;
  bool end_undo() noexcept;

  /// Whether this variable was changed.
  bool has_changed(std::string_view variable) const noexcept { return changed_.contains(variable); }

  /// Returns the parts of a SET that undo the changes: ", name = value" for each.
  std::string assignments() const;

  void forget_changes() noexcept;

 private:
  struct Callback;
  void note_variable(std::string_view name, std::string_view value);
  void note_state() noexcept;

  bool active_ = false;
  bool heard_ = false;
  bool was_autocommit_on_ = false;
  bool undoing_ = false;
  bool undo_heard_ = false;
  bool lost_ = false;
  bool other_changes_ = false;
  bool variable_in_reply_ = false;  ///< The present reply has named a variable.
  std::set<std::string, std::less<>> changed_;
  std::set<std::string, std::less<>> others_;
  std::map<std::string, std::string, std::less<>> values_;      ///< The values that were reported last.
  std::map<std::string, std::string, std::less<>> remembered_;  ///< The values at the time of `remember`.
};

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
