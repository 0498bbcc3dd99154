#include "cli/key_file.hpp"

#include <string_view>
#include <system_error>
#include <unordered_set>

#include <fmt/format.h>

#include "cli/consume/input_file.hpp"
#include "console/line_reader.hpp"
#include "console/output.hpp"
#include "console/usage_error.hpp"
#include "message/key.hpp"

namespace txinbox::cli {
namespace {

// Longer than any valid key, so that the error about a longer key can say how long it is.
constexpr std::size_t longest_line = 65'536;

void check(const std::string& name, std::size_t number, std::string_view line) {
  try {
    detail::check_business_key(line);
  } catch (const Error& error) {
    throw UsageError(fmt::format("{}: line {}: {}; nothing was done", name, number, error.what()));
  }
}

}  // namespace

void add_keys_from(Command command, std::string& path) {
  command.option("--keys-from", path, "A file with one business key in each line; - for standard input").type("FILE");
}

std::vector<FileKey> read_keys(const std::string& path) {
  const InputFile file(path);
  const std::string name = path == "-" ? "standard input" : path;
  LineReader lines(file.fd(), -1, longest_line);
  std::vector<FileKey> keys;
  std::unordered_set<std::string> seen;
  for (std::string_view line;;) {
    const auto status = lines.next(line);
    if (status == LineReader::Status::end) break;
    if (status == LineReader::Status::error) {
      throw UsageError(fmt::format("{}: {}", name, std::generic_category().message(lines.error_number())));
    }
    if (status == LineReader::Status::too_long) {
      throw UsageError(
          fmt::format("{}: line {}: it has more than {} bytes, and a business key at most 255; nothing was "
                      "done",
                      name, lines.number(), longest_line));
    }
    if (line.empty()) continue;
    check(name, lines.number(), line);
    if (!seen.emplace(line).second) continue;
    if (keys.size() == max_file_keys) {
      throw UsageError(fmt::format("{}: it has more than {} keys; split it. Nothing was done", name, max_file_keys));
    }
    keys.push_back({std::string(line), lines.number()});
  }
  if (keys.empty()) throw UsageError(fmt::format("{}: there is no key in it", name));
  return keys;
}

void say_where_it_stopped(const FileKey& key) {
  if (key.line == 0) return;
  message(fmt::format(
      "txinbox: line {}: it stopped here. The keys before it are done; the same file can be given again", key.line));
}

}  // namespace txinbox::cli
