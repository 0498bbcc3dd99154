#include <txinbox/source.hpp>

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

TXINBOX_NAMESPACE_END
}  // namespace txinbox
