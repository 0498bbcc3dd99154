#include "backend/mysql/session_tracker.hpp"

#include <algorithm>
#include <array>
#include <cstdarg>

#include <fmt/format.h>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

constexpr std::string_view what_is_tracked = "session_track_system_variables";
constexpr std::string_view is_state_tracked = "session_track_state_change";

/// Variables that the server reports although no statement has set them.
constexpr std::array<std::string_view, 3> counters = {"last_gtid", "gtid_executed", "statement_id"};

/// Variables without a default, and the value that they have if no statement has set them.
constexpr std::array<std::string_view, 3> zeros = {"insert_id", "last_insert_id", "identity"};

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& names, std::string_view name) noexcept {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

// This is the first version of MariaDB's client library whose callback works reliably.
#if defined(MARIADB_PACKAGE_VERSION_ID) && MARIADB_PACKAGE_VERSION_ID >= 30305

#ifdef __clang__
#pragma clang diagnostic ignored "-Wvarargs"  // the library defines the type of `what`
#endif

struct MysqlSessionTracker::Callback {
  static void on_status(void* tracker, enum enum_mariadb_status_info what, ...) {
    if (what != SESSION_TRACK_TYPE) return;
    auto& self = *static_cast<MysqlSessionTracker*>(tracker);
    va_list arguments;
    va_start(arguments, what);
    const int change = va_arg(arguments, int);
    if (change == SESSION_TRACK_STATE_CHANGE) {
      self.note_state();
    } else if (change == SESSION_TRACK_SYSTEM_VARIABLES) {
      const auto* name = va_arg(arguments, MARIADB_CONST_STRING*);
      const auto* value = va_arg(arguments, MARIADB_CONST_STRING*);
      try {
        self.note_variable({name->str, name->length}, {value->str, value->length});
      } catch (...) {
        self.lost_ = true;
      }
    }
    va_end(arguments);
  }

  static bool set(MYSQL* connection, MysqlSessionTracker* tracker) noexcept {
    return mysql_optionsv(connection, MARIADB_OPT_STATUS_CALLBACK, tracker == nullptr ? nullptr : &on_status,
                          tracker) == 0;
  }
};

#else

struct MysqlSessionTracker::Callback {
  static bool set(MYSQL*, MysqlSessionTracker*) noexcept { return false; }
};

#endif

void MysqlSessionTracker::begin(MYSQL* connection) {
  if (!Callback::set(connection, this)) return;
  const unsigned refused = try_exec(
      connection, fmt::format("SET session_track_schema = 1, {} = 1, {} = '*'", is_state_tracked, what_is_tracked));
  if (refused == 0) exec(connection, "SET autocommit = 1");
  active_ = heard_;
  if (!active_) end(connection);
}

void MysqlSessionTracker::end(MYSQL* connection) noexcept {
  Callback::set(connection, nullptr);
  active_ = false;
}

void MysqlSessionTracker::remember(std::span<const std::string_view> others) {
  others_.clear();
  for (const std::string_view name : others) others_.emplace(name);
  remembered_ = values_;
  forget_changes();
}

bool MysqlSessionTracker::is_lost() const noexcept {
  return lost_ || changed_.contains(what_is_tracked) || changed_.contains(is_state_tracked);
}

void MysqlSessionTracker::begin_undo() noexcept {
  undoing_ = true;
  undo_heard_ = false;
}

bool MysqlSessionTracker::end_undo() noexcept {
  undoing_ = false;
  forget_changes();
  return undo_heard_;
}

void MysqlSessionTracker::forget_changes() noexcept {
  changed_.clear();
  heard_ = lost_ = other_changes_ = variable_in_reply_ = false;
}

std::string MysqlSessionTracker::assignments() const {
  std::string all = fmt::format(", {} = 1", is_state_tracked);
  for (const std::string& name : changed_) {
    if (others_.contains(name)) continue;
    const auto before = remembered_.find(name);
    std::string value = is_one_of(zeros, name) ? "0" : "DEFAULT";
    if (before != remembered_.end()) {
      const bool bare = !before->second.empty() && before->second.find_first_not_of("0123456789.") == std::string::npos;
      value = bare ? before->second : quoted(before->second);
    }
    all += fmt::format(", {} = {}", quoted_identifier(name), value);
  }
  return all;
}

void MysqlSessionTracker::note_variable(std::string_view name, std::string_view value) {
  if (is_one_of(counters, name)) return;
  variable_in_reply_ = true;
  if (name == "autocommit") {
    heard_ = value == "ON";
    was_autocommit_on_ = was_autocommit_on_ || heard_;
    return;
  }
  if (undoing_ && name == is_state_tracked) undo_heard_ = true;
  if (undoing_) return;
  changed_.emplace(name);
  values_.insert_or_assign(std::string(name), std::string(value));
}

/// Takes the last report of a reply. If the reply has named a variable, the change of that variable explains the
/// report.
void MysqlSessionTracker::note_state() noexcept {
  if (!variable_in_reply_) other_changes_ = true;
  variable_in_reply_ = false;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
