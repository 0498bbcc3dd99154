#pragma once

#include <filesystem>
#include <string>

namespace txinbox::test {

/// The project's folder.
std::filesystem::path source_folder();

/// The text of a file of the project, such as "docs/reference/guard.md". Throws if there is none.
std::string source_text(const std::string& path);

}  // namespace txinbox::test
