#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <txinbox/redrive.hpp>
#include <txinbox/source.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The facts about a dead letter, from its headers and from the options. Its delivery must outlive it.
struct DeadLetterInfo {
  std::string_view reason;
  std::string_view error_class;
  std::string_view consumer;
  std::string business_key;
  bool is_ours = false;  ///< It has the headers of txinbox.
  std::string_view destination;
  int redrives = 0;                  ///< How often it was published again.
  std::string_view last_redrive;     ///< The call that did it last.
  std::string_view dropped_headers;  ///< How many of its headers are missing; empty if none are.

  DeadLetterInfo(const Incoming& incoming, const RedriveOptions& options);

  /// Why it must not be published, as far as the database is not needed to know this. Empty: it may be. `redrive`
  /// identifies the call.
  std::string why_left(const RedriveOptions& options, std::string_view redrive) const;

  /// The headers of the message that is published.
  std::vector<std::pair<std::string_view, std::string>> headers(std::string_view redrive) const;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
