// Runs each target on its corpus, without libFuzzer, which only clang has.
//
// Usage: replay CORPUS
//   CORPUS  a folder with a folder of inputs for each target

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "targets.hpp"

namespace {

using txinbox::fuzz::Target;

std::vector<std::filesystem::path> inputs_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// Returns the number of inputs. A claim of the target that does not hold ends the process. So the name of the input is
/// printed before.
std::size_t run(const Target& target, const std::filesystem::path& corpus) {
  std::size_t count = 0;
  for (const auto& file : inputs_of(corpus / target.name)) {
    std::ifstream in(file, std::ios::binary);
    const std::string input((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    if (!in) throw std::filesystem::filesystem_error("cannot be read", file, {});
    std::printf("%s/%s\n", target.name, file.filename().c_str());
    std::fflush(stdout);
    target.run(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
    ++count;
  }
  return count;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: replay CORPUS\n");
    return 2;
  }
  std::size_t inputs = 0;
  for (const Target& target : txinbox::fuzz::targets) {
    const std::size_t count = run(target, argv[1]);
    if (count == 0) {
      std::fprintf(stderr, "the target %s has no inputs\n", target.name);
      return 1;
    }
    inputs += count;
  }
  std::printf("count: %zu inputs of %zu fuzz targets\n", inputs, std::size(txinbox::fuzz::targets));
}
