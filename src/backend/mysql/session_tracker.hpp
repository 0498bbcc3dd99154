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

/// Learns what a session's user changes: the server says it in its replies (session tracking), so that it costs no
/// round trip. What changed is known by name for variables; that a temporary table, a user variable or a prepared
/// statement did is known without telling which.
///
/// It needs MariaDB's client library, a server that speaks of changes, and no proxy that keeps them to itself;
/// otherwise it is not active.
class MysqlSessionTracker {
 public:
  MysqlSessionTracker() = default;
  MysqlSessionTracker(const MysqlSessionTracker&) = delete;
  MysqlSessionTracker& operator=(const MysqlSessionTracker&) = delete;

  /// Asks for it. The connection calls back: `end` must come before this object goes.
  void begin(MYSQL*);
  void end(MYSQL*) noexcept;

  /// The variables' values by now are what they come back to. Those of `others` somebody else restores.
  void remember(std::span<const char* const> others);

  bool active() const noexcept { return active_; }

  /// Whether a variable was changed, but for autocommit, which each transaction of ours switches.
  bool has_changed_variables() const noexcept { return !changed_.empty() || lost_; }

  /// Whether something was changed that is no variable. What a reply says together with a variable goes unseen.
  bool has_other_changes() const noexcept { return other_changes_; }

  /// Whether the server has said last that autocommit is on. If it has not, although it was switched on, somebody has
  /// ended the tracking.
  bool is_heard() const noexcept { return heard_; }

  /// Whether changes may have gone unheard: somebody has changed what is spoken of, or there was no memory.
  bool is_lost() const noexcept;

  /// Around the statement with `assignments`. False: the server did not speak of it, as it does of all that is set.
  void begin_undo() noexcept;
  bool end_undo() noexcept;

  /// Whether this variable was changed.
  bool has_changed(std::string_view variable) const noexcept { return changed_.contains(variable); }

  /// Parts of a SET that undo the changes, ", name = value" for each.
  std::string assignments() const;

  void forget_changes() noexcept;

 private:
  struct Callback;
  void note_variable(std::string_view name, std::string_view value);
  void note_state() noexcept;

  bool active_ = false;
  bool heard_ = false;
  bool undoing_ = false;
  bool undo_heard_ = false;
  bool lost_ = false;
  bool other_changes_ = false;
  bool variable_in_reply_ = false;  ///< The reply in hand has named one.
  std::set<std::string, std::less<>> changed_;
  std::set<std::string, std::less<>> others_;
  std::map<std::string, std::string, std::less<>> values_;      ///< As last heard of.
  std::map<std::string, std::string, std::less<>> remembered_;  ///< Of those that were set by `remember`.
};

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
