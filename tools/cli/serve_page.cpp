#include "cli/serve_page.hpp"

#include "console/usage_error.hpp"

#ifdef TXINBOX_CLI_HTTP
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>
#include <txinbox/http/httplib.hpp>
#include <txinbox/operator_page.hpp>
#endif

namespace txinbox::cli {

#ifdef TXINBOX_CLI_HTTP

void serve_page(Pool& pool, const ServeOptions& options, const std::stop_token& stop,
                const std::function<void(std::uint16_t port)>& on_listen) {
  constexpr std::size_t threads = 32;
  http::OperatorPageOptions page_options{
      .path = options.path, .may_write = options.may_write, .show_payloads = options.show_payloads};
  page_options.hosts.push_back(options.host);
  page_options.hosts.insert(page_options.hosts.end(), options.hosts.begin(), options.hosts.end());
  if (!options.user_header.empty()) {
    page_options.sign_in = http::sign_in_by_header(options.user_header);
    page_options.challenge.clear();
  } else if (!options.token.empty()) {
    page_options.sign_in = http::sign_in_with_token(options.token);
  } else {
    page_options.anyone_may_read = true;  // on the loopback only
  }
  http::OperatorPage page(pool, std::move(page_options));
  httplib::Server server;
  server.set_tcp_nodelay(true);
  server.set_read_timeout(std::chrono::seconds(2));  // a client that sends nothing holds a thread
  server.set_keep_alive_timeout(2);
  server.new_task_queue = [] { return new httplib::ThreadPool(threads); };  // NOLINT: the server deletes it
  // By default, cpp-httplib lets several servers listen on one port. Then each gets a part of the requests.
  server.set_socket_options([](int socket) {
    const int yes = 1;
    (void)::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  http::mount_page(server, page, options.path);
  const int port = options.port == 0                                 ? server.bind_to_any_port(options.host)
                   : server.bind_to_port(options.host, options.port) ? int{options.port}
                                                                     : -1;
  if (port < 0) throw UsageError(fmt::format("--listen: cannot listen on {} port {}", options.host, options.port));
  on_listen(static_cast<std::uint16_t>(port));
  std::atomic<bool> has_ended = false;
  const std::jthread stopper([&] {
    constexpr std::chrono::milliseconds between_looks{50};
    while (!stop.stop_requested() && !has_ended) std::this_thread::sleep_for(between_looks);
    while (!has_ended) {  // a server that does not run yet ignores the call
      server.stop();
      std::this_thread::sleep_for(between_looks);
    }
  });
  const bool was_stopped = server.listen_after_bind();
  has_ended = true;
  if (!was_stopped && !stop.stop_requested()) {
    throw std::runtime_error(
        "serve: the server has ended, because it cannot accept connections; see the limits of this "
        "process for open files and memory");
  }
}

#else

void serve_page(Pool&, const ServeOptions&, const std::stop_token&, const std::function<void(std::uint16_t)>&) {
  throw UsageError("this txinbox was built without the page; build it with -DTXINBOX_WITH_HTTP=ON and cpp-httplib");
}

#endif

}  // namespace txinbox::cli
