#include "source_files.hpp"

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace txinbox::test {

// The build defines the folder only for this file. So the objects of all other tests are the same in every checkout,
// and ccache finds them.
std::filesystem::path source_folder() { return TXINBOX_SOURCE_FOLDER; }

std::string source_text(const std::string& path) {
  std::ifstream file(source_folder() / path);
  if (!file) throw std::runtime_error("there is no " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace txinbox::test
