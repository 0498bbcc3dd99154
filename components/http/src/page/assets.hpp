#pragma once

#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {

/// The files of components/http/page.
std::string_view page_css() noexcept;
std::string_view page_js() noexcept;

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
