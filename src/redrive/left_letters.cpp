#include "redrive/left_letters.hpp"

#include <utility>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

void LeftLetters::add(Incoming incoming, std::string why) {
  bytes_ += incoming.body.size();
  left_.push_back({std::move(incoming), std::move(why)});
}

void LeftLetters::forget_lost(const Source& source) {
  std::erase_if(left_, [&](const Left& each) { return !source.holds(each.incoming); });
  bytes_ = 0;
  for (const Left& each : left_) bytes_ += each.incoming.body.size();
}

std::set<std::uint64_t> LeftLetters::lanes() const {
  std::set<std::uint64_t> all;
  for (const Left& each : left_) {
    if (each.incoming.lane) all.insert(*each.incoming.lane);
  }
  return all;
}

std::map<std::string, std::size_t> LeftLetters::reasons() const {
  std::map<std::string, std::size_t> all;
  for (const Left& each : left_) ++all[each.why];
  return all;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
