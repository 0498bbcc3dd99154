// The C++ code of the documents is code that is compiled and run.

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/source_files.hpp"

namespace {

const std::filesystem::path source = txinbox::test::source_folder();

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  REQUIRE_MESSAGE(in.good(), file.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The lines without their indentation, so that a block can also be in a function.
std::string without_indentation(const std::string& text) {
  std::string out;
  bool at_start = true;
  for (const char c : text) {
    if (at_start && c == ' ') continue;
    at_start = c == '\n';
    out += c;
  }
  return out;
}

std::vector<std::string> cpp_blocks(const std::string& markdown) {
  const std::string open = "```cpp\n";
  std::vector<std::string> blocks;
  for (std::size_t at = markdown.find(open); at != std::string::npos; at = markdown.find(open, at)) {
    at += open.size();
    const std::size_t end = markdown.find("```", at);
    blocks.push_back(markdown.substr(at, end - at));
    at = end + 3;
  }
  return blocks;
}

}  // namespace

TEST_CASE("each block of C++ in the README and the docs stands in an example that is built and run") {
  std::string examples;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source / "examples")) {
    const auto extension = entry.path().extension();
    if (extension == ".cpp" || extension == ".hpp") examples += without_indentation(text_of(entry.path()));
  }
  std::vector<std::filesystem::path> documents = {source / "README.md"};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source / "docs")) {
    if (entry.path().extension() == ".md") documents.push_back(entry.path());
  }
  int found = 0;
  for (const auto& document : documents) {
    for (const std::string& block : cpp_blocks(text_of(document))) {
      ++found;
      CAPTURE(document.filename().string());
      CHECK_MESSAGE(examples.find(without_indentation(block)) != std::string::npos, block);
    }
  }
  CHECK(found >= 3);
}
