#pragma once

/// @file
/// A page for operators, which shows and repairs what the inbox and the outbox hold. `txinbox serve` runs it. A service
/// can mount it in its own HTTP server.
///
/// There is no HTTP library in this header. `mount_page` in txinbox/http/httplib.hpp connects it to one.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <txinbox/http.hpp>
#include <txinbox/listener.hpp>
#include <txinbox/pool.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN
namespace http {

/// Finds out who sends a request: returns the name of the operator, which goes into the audit. None: the request gets
/// 401.
using SignIn = std::function<std::optional<std::string>(const Request&)>;

/// A sign-in with a token: the password of HTTP Basic authentication is the token, and the user's name is the name of
/// the operator. The token is compared in constant time. Use it only on the loopback or with TLS.
///
/// @limits the token has at least 16 bytes; a name has 1 to 255 bytes of UTF-8.
/// @errors `Error` invalid_argument for a shorter token.
SignIn sign_in_with_token(std::string token);

/// A sign-in by a proxy in front of the server, which has authenticated the operator: the name is the value of this
/// header field. A request with several such fields is refused. A client that reaches the server without the proxy can
/// set the field itself. So no other program may reach it.
SignIn sign_in_by_header(std::string name);

/// How the page is served, and what operators may do there.
struct OperatorPageOptions {
  /// The path where it is mounted, as "/txinbox". Empty: the root of the server.
  std::string path = {};

  /// The hosts that a browser may name to reach it. A request for another host gets 421. This stops a page of another
  /// origin that has its own name resolved to this server (DNS rebinding).
  std::vector<std::string> hosts = {"localhost", "127.0.0.1", "::1"};

  /// Who sends a request. It must be set, unless `anyone_may_read` is: a page must not be open by mistake.
  SignIn sign_in = {};

  /// Without `sign_in`: whoever reaches the server may read everything. Nobody can change anything then.
  bool anyone_may_read = false;

  /// The value of WWW-Authenticate in the answer 401. Empty: none.
  std::string challenge = "Basic realm=\"txinbox\", charset=\"UTF-8\"";

  /// Whether operators may change something: retry, discard, redrive, pause, resume. It needs `sign_in`.
  bool may_write = false;

  /// Whether the page shows payloads, stored results and error texts, which can be personal data.
  bool show_payloads = false;
};

/// The page. It has these paths below `OperatorPageOptions::path`; each of them is also there as JSON, below `/api`:
///
/// | path | shows | changes |
/// |---|---|---|
/// | `/` | consumers: rates, failed messages, conflicts, leases, pauses; sources: `listener` | pause, resume |
/// | `/failed` | failed messages | retry, discard, redrive from the stored payload |
/// | `/message` | everything about one key | the same |
/// | `/conflicts` | messages with a known key and other content | |
/// | `/leases` | leases | |
/// | `/outbox` | messages that wait, and relays | retry, discard |
/// | `/audit` | what operators have changed | |
/// | `/doctor` | what `diagnose` finds | |
///
/// The members of the JSON are those of the command's `--json`. docs/operations/page.md describes paths and parameters.
///
/// Reading works without JavaScript. Everything that the page needs comes from this object: it makes no request to
/// another host. A change is a POST with JSON and the header field `X-Txinbox: 1`, from the page's own origin. Each
/// change has a record in the audit.
class OperatorPage {
 public:
  /// The pool must outlive the page. The page borrows one connection for each request. Give it a pool of its own, so
  /// that the consumers do not wait for it.
  ///
  /// @errors `Error` invalid_argument for the options.
  explicit OperatorPage(Pool& pool, OperatorPageOptions options = {});

  OperatorPage(OperatorPage&&) noexcept;             ///< The moved-from page may only be assigned to or destroyed.
  OperatorPage& operator=(OperatorPage&&) noexcept;  ///< As the constructor.
  ~OperatorPage();

  /// Answers a request. An answer to HEAD has no body, and the Content-Length that GET would have.
  ///
  /// @blocking for the time of a few statements, and as `Pool::acquire`.
  /// @errors   it does not throw: every error is an answer.
  /// @threads  any number.
  Response handle(const Request& request);

  /// Shows the sources of this process on the page `/`: put the result into `ConsumerOptions::listeners` of each
  /// consumer of `run`. What waits at the broker and whether the breaker has tripped is not in the database: only the
  /// process that consumes knows it. So a page of another process, such as `txinbox serve`, does not show it.
  ///
  /// `run` reports no end. A source that reports nothing for a minute, and for three times its
  /// `RunOptions::status_interval`, is shown as silent.
  ///
  /// @limits  it remembers 1,000 calls of `run`. With more, it forgets the one that has been silent for the longest
  ///          time. A call that is silent for an hour is forgotten, if a later one has the same source and consumer.
  /// @threads any number. Each call returns the same object. It may outlive the page.
  std::shared_ptr<Listener> listener() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace http
TXINBOX_API_END
}  // namespace txinbox
