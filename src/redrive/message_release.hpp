#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include <txinbox/pool.hpp>
#include <txinbox/redrive.hpp>
#include <txinbox/version.hpp>

#include "redrive/dead_letter_info.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Lets the messages of dead letters run again in the database.
class MessageRelease {
 public:
  explicit MessageRelease(const RedriveOptions& options) : options_(options) {}

  /// Lets the message run; with `dry_run`, only finds out whether it can. Returns why it cannot; empty if it can.
  ///
  /// Errors: a database error as it was.
  std::string let_run(Connection& connection, const DeadLetterInfo& info);

 private:
  bool is_known(Connection& connection, std::string_view consumer);

  const RedriveOptions& options_;
  std::map<std::string, bool, std::less<>> known_consumers_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
