#pragma once

#include <string>
#include <string_view>

#include <txinbox/version.hpp>

#include "base/url.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// Returns the file that a URL names.
inline std::string sqlite3_file(const detail::Url& url) { return url.has_authority ? "/" + url.path : url.path; }

/// Whether SQLite treats this file name as a database in memory.
inline bool is_sqlite3_in_memory(std::string_view file) {
  return file.empty() || file.find(":memory:") != std::string_view::npos ||
         file.find("mode=memory") != std::string_view::npos;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
