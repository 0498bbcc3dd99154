#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <txinbox/schema.hpp>

#include "cli/help_text.hpp"
#include "cli/serve_page.hpp"
#include "cli/subcommands.hpp"
#include "console/database_option.hpp"
#include "console/exit_status.hpp"
#include "console/json_output.hpp"
#include "console/open_database.hpp"
#include "console/output.hpp"
#include "console/stop_signals.hpp"
#include "console/usage_error.hpp"

namespace txinbox::cli {
namespace {

constexpr std::size_t connections = 4;

struct Options {
  DatabaseOption database;
  std::string listen = "127.0.0.1:8317";
  std::vector<std::string> hosts;
  std::string path;
  std::string user_header;
  bool may_write = false;
  bool show_payloads = false;
  bool json = false;
};

/// Splits HOST:PORT, also [::1]:PORT.
std::optional<std::pair<std::string, std::uint16_t>> address_of(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return std::pair(std::string(host), port);
}

bool is_loopback(const std::string& host) {
  in_addr address{};
  const bool is_ip4 = ::inet_pton(AF_INET, host.c_str(), &address) == 1;
  return host == "localhost" || host == "::1" || (is_ip4 && ntohl(address.s_addr) >> 24U == 127U);
}

/// 192 random bits as text.
std::string new_token() {
  std::random_device random;  // on Linux, of the kernel
  std::string token;
  for (int i = 0; i < 6; ++i) token += fmt::format("{:08x}", random());
  return token;
}

ServeOptions serve_options(const Options& options, bool& is_new_token) {
  const auto address = address_of(options.listen);
  if (!address) throw UsageError("--listen takes HOST:PORT, such as 127.0.0.1:8317");
  ServeOptions serve{.host = address->first,
                     .port = address->second,
                     .hosts = options.hosts,
                     .path = options.path,
                     .user_header = options.user_header,
                     .may_write = options.may_write,
                     .show_payloads = options.show_payloads};
  const bool is_local = is_loopback(serve.host);
  if ((serve.host == "0.0.0.0" || serve.host == "::") && serve.hosts.empty()) {
    throw UsageError("--listen on all addresses needs --host: the name by which browsers reach the page");
  }
  const auto has_port = [](const std::string& host) { return host.find_first_of(":[]/") != std::string::npos; };
  if (std::ranges::any_of(serve.hosts, has_port)) throw UsageError("--host takes a name without a port");
  const char* const given = std::getenv("TXINBOX_SERVE_TOKEN");
  const bool has_token = given != nullptr && *given != '\0';
  if (!options.user_header.empty()) {
    if (has_token) throw UsageError("either --user-header or TXINBOX_SERVE_TOKEN, not both");
    if (!is_local) {
      throw UsageError(
          "--user-header needs --listen on the loopback: otherwise everybody could send the header field without the "
          "proxy");
    }
    return serve;
  }
  if (has_token) {
    serve.token = given;
  } else if (options.may_write || !is_local) {
    serve.token = new_token();
    is_new_token = true;
  }
  return serve;
}

std::string url_of(const ServeOptions& options, std::uint16_t port) {
  const bool is_ip6 = options.host.find(':') != std::string::npos;
  return fmt::format("http://{}{}{}:{}{}/", is_ip6 ? "[" : "", options.host, is_ip6 ? "]" : "", port, options.path);
}

int run_serve(const Options& options) {
  bool is_new_token = false;
  const ServeOptions serve = serve_options(options, is_new_token);
  const StopSignals signals;
  Pool pool = open_for_reading(options.database, connections);
  verify(pool.acquire(signals.token()));
  Output output;
  serve_page(pool, serve, signals.token(), [&](std::uint16_t port) {
    const std::string url = url_of(serve, port);
    if (options.json) {
      Json json{{"url", url}, {"may_write", serve.may_write}};
      if (is_new_token) json.set("token", serve.token);
      output.line(json.text());
      return;
    }
    output.line(url);
    if (!serve.may_write) output.line("read-only; --write lets operators change something");
    if (is_new_token) {
      output.line("sign in with your name, and this password: " + serve.token);
    } else if (!serve.token.empty()) {
      output.line("sign in with your name, and the password in TXINBOX_SERVE_TOKEN");
    }
    if (!is_loopback(serve.host))
      message("txinbox: without TLS, others can read what is sent; put a proxy in front of it");
  });
  return output.failed() ? exit_stopped : exit_ok;
}

}  // namespace

void add_serve(Command app, Run& run) {
  auto options = std::make_shared<Options>();
  auto command = app.subcommand("serve", "Serve a page for operators, which shows and repairs messages");
  options->database.add_to(command);
  command.option("--listen", options->listen, "Where to listen; port 0: any free port")
      .type("HOST:PORT")
      .with_default();
  command.flag("--write", options->may_write,
               "Operators may retry, discard, redrive, pause and resume. They sign in with their name, which goes into "
               "the audit, and the password in TXINBOX_SERVE_TOKEN, or else a new one that is printed");
  command
      .option("--user-header", options->user_header,
              "The header field in which a proxy names the operator whom it has authenticated; only on the loopback")
      .type("NAME");
  command.option("--host", options->hosts, "A further host by which browsers reach the page. May be repeated")
      .type("HOST")
      .once_each();
  command.option("--path", options->path, "The path of the page, if a proxy forwards only this one").type("PATH");
  command.flag("--show-payloads", options->show_payloads,
               "Also show payloads, stored results and error texts, which can be personal data");
  command.flag("--json", options->json, "Print the address as JSON");
  command.add_help({"txinbox serve --db sqlite:orders.db", "txinbox serve --write --listen 127.0.0.1:9000"},
                   {{exit_ok, "SIGINT or SIGTERM has ended it"}, usage_status, database_status, output_status});
  command.on_chosen(run, [options] { return run_serve(*options); });
}

}  // namespace txinbox::cli
