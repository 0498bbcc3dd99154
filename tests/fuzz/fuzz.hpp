#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace txinbox::fuzz {

/// Ends the process if the claim does not hold. Then the fuzzer keeps the input.
inline void claim(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "claim broken: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

/// An input that consists of lines, so that a person can write and read it.
class Fields {
 public:
  Fields(const std::uint8_t* data, std::size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return rest_.empty(); }

  std::string_view line() {
    const auto end = rest_.find('\n');
    const auto line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    return line;
  }

  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

/// Returns the result of `make`, or none if `make` throws `Refusal`. Every other exception is a finding.
template <class Refusal, class Make>
auto unless_refused(Make make) -> std::optional<decltype(make())> {
  try {
    return make();
  } catch (const Refusal&) {
    return std::nullopt;
  }
}

}  // namespace txinbox::fuzz

/// Runs the target on one input. Each target is in a separate file, and defines this function.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
