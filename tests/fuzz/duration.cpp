// A duration on the command line. It must be accepted if it is a decimal number and a unit, and must have the right
// value.

#include <charconv>
#include <chrono>
#include <map>
#include <string>

#include <CLI/CLI.hpp>

#include "fuzz.hpp"
#include "torture/options.hpp"

using namespace txinbox::fuzz;

namespace {

using std::chrono::milliseconds;

// None if the text is not a duration, or if a storm cannot last so long.
std::optional<milliseconds> read(std::string_view text) {
  const std::map<std::string_view, long long> units{
      {"ms", 1}, {"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};
  const auto digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto unit = units.find(text.substr(digits));
  long long number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, number);
  if (unit == units.end() || digits == 0 || error != std::errc()) return std::nullopt;
  if (number < 1 || number > 720LL * 3'600'000 / unit->second) return std::nullopt;
  return milliseconds(number * unit->second);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  txinbox::torture::Arguments arguments;
  CLI::App app;
  add_options(app, arguments);
  const auto taken = unless_refused<CLI::ParseError>([&] {
    app.parse(std::vector<std::string>{"--duration=" + text});
    return arguments.torture.storm.duration;
  });
  claim(taken == read(text), "a duration has the value of its text");
  return 0;
}
