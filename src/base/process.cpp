#include "base/process.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

std::string host_and_process() {
  constexpr std::size_t most = 48;
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  std::string name = host.data();
  name.resize(std::min(name.size(), most));
  std::ranges::replace_if(
      name, [](char c) { return c < '!' || c > '~'; }, '?');
  return fmt::format("{}:{}", name, ::getpid());
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
