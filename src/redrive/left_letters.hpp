#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <txinbox/incoming.hpp>
#include <txinbox/source.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The dead letters that a call of `redrive` has left, and why. The source holds them until the end of the call, and
/// gives them back then.
class LeftLetters {
 public:
  void add(Incoming, std::string why);

  /// Forgets what the broker has taken back: it comes again.
  void forget_lost(const Source&);

  std::size_t count() const noexcept { return left_.size(); }
  std::size_t bytes() const noexcept { return bytes_; }

  /// The lanes in which nothing later may be acknowledged.
  std::set<std::uint64_t> lanes() const;

  /// How many were left for each reason.
  std::map<std::string, std::size_t> reasons() const;

 private:
  struct Left {
    Incoming incoming;
    std::string why;
  };

  std::vector<Left> left_;
  std::size_t bytes_ = 0;  ///< Of the bodies.
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
