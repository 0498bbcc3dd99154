#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <txinbox/message.hpp>
#include <txinbox/version.hpp>

#include "backend/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// A failure, as the row stores it.
struct FailureEntry {
  std::string error_class;
  std::string text;  ///< Empty if no text is kept.
  std::string_view payload;
  int crashes = 0;  ///< How many processes crashed: 0 or 1.
};

/// The marker of a process that runs, or ran, an attempt at the message.
struct ProcessMarker {
  std::string process;  ///< 16 bytes.
  bool exclusive;       ///< The process ran no other attempt at the same time.
};

/// The row of a message that has failed or is being attempted.
struct FailedMessageRow {
  int attempts = 0;
  bool has_crashes = false;
  std::optional<ProcessMarker> marker = {};
};

/// Statements on the table of failed messages, about one message. Each is a transaction of its own, except where it
/// says otherwise.
class FailedMessageTable {
 public:
  FailedMessageTable(backend::Session& session, std::string_view consumer, const Message& message)
      : session_(session), consumer_(consumer), message_(message) {}

  /// Counts a failure, and removes the marker. Returns the number of counted failures.
  int add(const FailureEntry&) const;

  /// Returns the row. If there is none, the result has no attempts and no marker.
  FailedMessageRow find() const;

  void write_marker(const Token& process, bool exclusive) const;

  /// Sets the numbers of failures and of crashes to zero, in the open transaction. `keep_marker`: an attempt may be
  /// running. Returns false if there is no row.
  bool reset(bool keep_marker) const;

  /// Returns the statement that removes this process's marker. The row stays, with its failures.
  std::string clear_marker_sql(const Token& process) const;

  /// Returns the statement that deletes the row, if it has this process's marker and no failures.
  std::string delete_marker_sql(const Token& process) const;

 private:
  std::string table() const;
  std::string is_key() const;
  std::string bears(const Token& process) const;

  backend::Session& session_;
  std::string_view consumer_;
  const Message& message_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
