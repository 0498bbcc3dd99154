#include <txinbox/redrive.hpp>

#include "redrive/redriver.hpp"
#include "types/enum_names.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

constexpr detail::EnumNames<RedriveEventType, RedriveEventType::source> type_names("redriven", "would_redrive", "left",
                                                                                   "waiting", "source");
constexpr detail::EnumNames<RedriveEnd, RedriveEnd::not_at_end> redrive_end_names("at_end", "stopped", "limit",
                                                                                  "too_many_left", "unreachable",
                                                                                  "not_at_end");

}  // namespace

std::string_view to_string(RedriveEventType type) noexcept { return type_names[type]; }
std::string_view to_string(RedriveEnd end) noexcept { return redrive_end_names[end]; }

RedriveSummary redrive(Source& source, const Republisher& publish, Pool& pool, const RedriveOptions& options) {
  return detail::Redriver(source, publish, pool, options).run();
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
