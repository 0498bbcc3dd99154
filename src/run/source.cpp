#include <txinbox/source.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include "types/enum_names.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

constexpr detail::EnumNames<SourceEventType, SourceEventType::warning> source_event_names("connected", "disconnected",
                                                                                          "lanes_assigned",
                                                                                          "lanes_leaving",
                                                                                          "lanes_revoked", "warning");

}  // namespace

std::string_view to_string(SourceEventType type) noexcept { return source_event_names[type]; }

Source::~Source() = default;

bool Source::holds(const Incoming&) const { return true; }
void Source::pause(std::uint64_t) {}
void Source::resume(std::uint64_t) {}
bool Source::can_rewind() const { return false; }
void Source::rewind(const Incoming&) {}
void Source::give_back(const Incoming&) {}

void Source::report(SourceEventType type, std::string text) {
  if (observer_) observer_({.type = type, .text = std::move(text)});
}

namespace dead_letter_header {

bool is_about_failure(std::string_view name) noexcept {
  constexpr std::array about_failure{reason, error_class, consumer, key, origin, source, failures};
  return std::ranges::find(about_failure, name) != about_failure.end();
}

}  // namespace dead_letter_header

bool is_replaced_by_redrive(std::string_view name) noexcept {
  return name == dead_letter_header::redrives || name == dead_letter_header::redrive ||
         dead_letter_header::is_about_failure(name);
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
