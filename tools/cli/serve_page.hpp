#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include <txinbox/pool.hpp>

namespace txinbox::cli {

/// How `txinbox serve` serves the operators' page.
struct ServeOptions {
  std::string host;
  std::uint16_t port;
  std::vector<std::string> hosts = {};  ///< Further hosts by which a browser may reach it.
  std::string path = {};
  std::string token = {};        ///< Empty: nobody signs in.
  std::string user_header = {};  ///< Not empty: the proxy's header field that names the operator.
  bool may_write = false;
  bool show_payloads = false;
};

/// Serves the page until `stop` is set. Calls `on_listen` with the port when browsers can connect.
///
/// Errors: `UsageError` if this txinbox was built without HTTP, or if the address cannot be used; `Error`
/// invalid_argument for the options.
void serve_page(Pool& pool, const ServeOptions& options, const std::stop_token& stop,
                const std::function<void(std::uint16_t port)>& on_listen);

}  // namespace txinbox::cli
