#pragma once

/// @file
/// Idempotent HTTP requests: a request that a client sends again gets the answer of the first one.
///
/// With a `TxConsumer`, the handler's SQL and the stored answer commit in one transaction. So no crash can leave an
/// effect without its answer. There is no HTTP library in this header; the adapters in txinbox/http/ connect it to one.

#include <chrono>
#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <txinbox/delivery.hpp>
#include <txinbox/handler.hpp>
#include <txinbox/json.hpp>
#include <txinbox/lease_consumer.hpp>
#include <txinbox/tx_consumer.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

/// Idempotent HTTP requests.
namespace http {

namespace detail {
class Exchange;
}

/// One header field.
struct Header {
  std::string name;   ///< Compared without regard to case.
  std::string value;  ///< Without CR and LF.
};

/// One part of a multipart body, if the HTTP server has taken the body apart.
struct Part {
  std::string name;               ///< The name of the field of the form.
  std::string file_name = {};     ///< Empty if it is no file.
  std::string content_type = {};  ///< Empty if the client sent none.
  std::string content = {};       ///< The whole content of the field or the file.
};

/// A client's request. An adapter must put all that the handler can see of the body into `body` or `parts`: another
/// body under the same key is recognized by them.
struct Request {
  std::string method;                ///< For example "POST".
  std::string target;                ///< Path and query, for example "/orders?dry=1".
  std::vector<Header> headers = {};  ///< In the order of the request.
  std::string body = {};             ///< The whole body. Empty if the server gives `parts` instead.
  std::vector<Part> parts = {};      ///< The parts of a multipart body. Empty if the server leaves it in `body`.
};

/// The answer that the client gets.
struct Response {
  int status = 200;                  ///< 100 to 599.
  std::vector<Header> headers = {};  ///< In the order of the answer.
  std::string body = {};             ///< The whole body.
};

/// The value of a header field; none if the field is missing. If the field is there several times, the first one.
std::optional<std::string_view> find_header(const std::vector<Header>& headers, std::string_view name) noexcept;

/// A handler throws this to refuse a request, for example a payment without cover: its SQL is rolled back, but the
/// response is kept and replayed. With a `LeaseConsumer` nothing can be rolled back; the response is kept.
class Refusal : public std::exception {
 public:
  /// `response` is what the client gets; its status is usually 402, 409 or 422.
  explicit Refusal(Response response) : response_(std::make_shared<const Response>(std::move(response))) {}

  /// The response.
  const Response& response() const noexcept { return *response_; }

  /// A text that names no value.
  const char* what() const noexcept override { return "the request was refused"; }

 private:
  std::shared_ptr<const Response> response_;
};

/// The idempotency key of a request. A text converts to it.
struct RequestKey {
  /// A key that is only a text.
  template <std::convertible_to<std::string> Text>
  RequestKey(Text&& key) : text(std::forward<Text>(key)) {}  // NOLINT: a KeyOf may return the text

  /// The key.
  std::string text;

  /// The text that must be equal if the same key comes again. None: `whole_request`. `GuardOptions::fingerprint` comes
  /// before both. `key_of_parameters` with pointers sets it to the values that are in the key.
  std::optional<std::string> fingerprint = {};

  /// Not empty: the handler does not run for this request. The request gets a stored answer if there is one, and
  /// otherwise 400 with this text. `Tokens` sets it for a token whose time is over.
  std::string too_late = {};
};

/// Takes the idempotency key from a request. It holds a function (const Request&) that returns a `RequestKey` or a
/// text. The function may also return an optional one, which is none if the request has no key. It throws `Error`
/// invalid_key or unreadable if it finds no valid key: the client gets 400 with the error's text.
///
/// @limits a `Guard` takes keys of at least 1 byte, in UTF-8 without NUL. The scope, a slash and the key have at most
///         255 bytes, so a key of 134 bytes always fits. Another key gets 400.
/// @threads any number, if the function allows it.
class KeyOf {
 public:
  /// The function that it holds.
  using Function = std::function<std::optional<RequestKey>(const Request&)>;

  /// Holds the function. `where` says where a client puts the key, such as "the header field Idempotency-Key". The
  /// answer 400 to a request without a key names it. Empty: the answer does not name a place.
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, KeyOf> && std::constructible_from<Function, F>)
      KeyOf(F&& function, std::string where = {})  // NOLINT: a function is a KeyOf
      : function_(std::forward<F>(function)), where_(std::move(where)) {}

  /// Whether it holds a function.
  explicit operator bool() const noexcept { return static_cast<bool>(function_); }

  /// The key of the request; none if it has none.
  ///
  /// @errors `Error` invalid_key, unreadable, and what the function throws.
  std::optional<RequestKey> operator()(const Request& request) const { return function_(request); }

  /// Where a client puts the key.
  const std::string& where() const noexcept { return where_; }

 private:
  Function function_;
  std::string where_;
};

/// The key in a header field: a structured-field string (`"8e03"`), or bare as most clients send it (`8e03`); both are
/// the same key. Source: draft-ietf-httpapi-idempotency-key-header-07.
///
/// @limits 1 to 128 printable ASCII characters. A bare key has no space, quote or comma. One field only.
KeyOf key_in_header(std::string name = "Idempotency-Key");

/// A key from the request itself, for clients that send none: the SHA-256 of `whole_request`. With JSON Pointers, of
/// method, target and these values of the body; two requests in which these are equal are the same request, whatever
/// else differs. Use it with `GuardOptions::valid_for`, because the same request may be sent again on purpose.
///
/// @errors `Error` invalid_argument for a pointer that is not valid.
KeyOf key_of_parameters(std::initializer_list<std::string_view> pointers = {});

/// A key from the JSON in the body, such as `order:{/order/no}`. A body that is not JSON gets 400. The same applies to
/// a body in which a value of the key is missing, null, an array, an object, or an empty string.
KeyOf key_of(JsonTemplate key);

/// Whose key it is: the authenticated tenant or user. 1 to 120 bytes of UTF-8, with 3 for each slash and percent sign.
using ScopeOf = std::function<std::string(const Request&)>;

/// The bytes that must be equal if a request with the same key comes again: method, target, body and parts.
std::string whole_request(const Request& request);

/// How a `Guard` treats requests.
struct GuardOptions {
  /// Where the key is.
  KeyOf key = key_in_header();

  /// Whether a request without a key gets 400. Otherwise its handler runs, in a transaction, each time.
  bool required = true;

  /// Returns the text that must be equal if the same key comes again; otherwise the client gets 422. Empty, the
  /// default: what the key says (`RequestKey::fingerprint`), and `whole_request` if it says nothing.
  std::function<std::string(const Request&)> fingerprint = {};

  /// For how long a stored answer counts (`Message::valid_for`). Zero: as long as the row is kept.
  std::chrono::milliseconds valid_for{0};

  /// The header fields of an answer that are stored and replayed. Others, such as Set-Cookie, go to the first client
  /// only. Set-Cookie and Authorization are refused here.
  std::vector<std::string> kept_headers = {"Content-Type", "Content-Language", "Content-Encoding", "Location", "Link",
                                           "ETag"};

  /// The largest body of a request, in bytes. Of parts, their contents count together. A larger one gets 413.
  std::size_t max_request = 1024UL * 1024;

  /// The treatment of an answer that is larger than the consumer's `max_result`. False: the SQL is rolled back, and the
  /// client gets 500. True: status and header fields are kept, and replayed without the body.
  bool keep_head = false;

  /// For a `LeaseConsumer`, whose effects cannot be rolled back: whether an answer of 500 to 599 is kept, too.
  /// Otherwise the next request with the key runs the handler again.
  bool keep_server_errors = false;

  /// The most that Retry-After asks a client to wait, at least a second.
  std::chrono::milliseconds max_retry_after{1'000};

  /// A URL that the answers 400, 409 and 422 link to. It should say for how long keys are kept. Empty: no link.
  std::string documentation = {};

  /// It is called with each error that becomes an answer of 500 or 503, for the log. It must not throw.
  std::function<void(const std::exception_ptr&, const Request&)> on_error = {};
};

/// Runs the handler of a route once for each key, and replays its answer.
///
/// | situation | answer |
/// |---|---|
/// | no key, a key that is not valid or too long, several fields | 400 |
/// | a token whose time was over before it was used | 400 |
/// | the first request with the key | the handler's |
/// | the same request again | the stored answer, and `Idempotent-Replayed: true` |
/// | another request with the key | 422 |
/// | the first request is still running | 409 with Retry-After, after the consumer's `claim_wait` |
/// | the handler throws `Refusal` | its response; the SQL is rolled back; the response is kept |
/// | the handler returns 500 to 599 | that answer; the SQL is rolled back; a retry runs again |
/// | the handler throws something else | 500; the SQL is rolled back; a retry runs again |
/// | `RetryLater`, a transient error of the database that outlives its retries, a stop, no schema | 503, Retry-After |
/// | the message is parked, torn or discarded | 409: an operator must look at it |
///
/// The answers of the guard itself are problem+json (RFC 9457). The business key is the scope and the key with a slash
/// between them: `txinbox show` finds it. The consumer's name should be that of the route.
class Guard {
 public:
  /// A guard whose handlers run SQL in the transaction of the claim. The consumer must outlive the guard.
  ///
  /// @param consumer it must have `claim_wait`; zero answers a copy of a running request at once.
  /// @param scope    says whose key it is. It has no default: without it, a client could read another client's answer.
  /// @param options  how to treat requests.
  /// @errors `Error` invalid_argument for the options, an empty function, or a consumer without `claim_wait`.
  Guard(TxConsumer& consumer, ScopeOf scope, GuardOptions options = {});

  /// A guard whose handlers run under a lease, for work that cannot be in one transaction. The consumer must outlive
  /// the guard.
  ///
  /// @errors `Error` invalid_argument for the options or an empty function.
  Guard(LeaseConsumer& consumer, ScopeOf scope, GuardOptions options = {});

  /// Moves a guard: the moved-from one may only be assigned to or destroyed.
  Guard(Guard&&) noexcept;

  /// Moves as the constructor does.
  Guard& operator=(Guard&&) noexcept;

  /// Ends the guard: no thread may be inside `handle`.
  ~Guard();

  /// Answers a request.
  ///
  /// @param request what came.
  /// @param handler a function that returns a `Response`. For a `TxConsumer` it takes (soci::session&, const Request&)
  ///                or (soci::session&, const Request&, Delivery&), or the connection of a client library instead of
  ///                the session, as a `Handler` may take it. For a `LeaseConsumer` it takes (Lease&, const Request&);
  ///                `Lease::delivery` is its delivery. It may run several times for one call; the SQL of one run stays.
  ///                With the delivery, it can keep statements prepared (`execute`, `Delivery::per_connection`), and
  ///                see the business key. It must not call `store` or `refuse`: the guard stores the answer, and
  ///                replaces what the handler has stored. Use `Refusal` instead of `refuse`.
  /// @blocking as `consume` of the consumer.
  /// @errors   it does not throw: every error is an answer. A handler of the wrong kind is 500.
  /// @threads  any number, if the consumer and the handler allow it.
  template <class F>
  Response handle(const Request& request, const F& handler) {
    if constexpr (std::is_invocable_v<const F&, Lease&, const Request&>) {
      return handle_under_lease(request, [&](Lease& lease) -> Response { return handler(lease, request); });
    } else {
      const Keep keep(*this);
      return handle_in_transaction(
          request, keep,
          [&]<class Connection>(Connection & connection, Delivery & delivery)
              -> void requires(takes_request<F, Connection> || takes_delivery<F, Connection>) {
            keep(delivery, [&]() -> Response { return answer_of(handler, connection, request, delivery); });
          });
    }
  }

 private:
  class Impl;

  template <class F, class Connection>
  static constexpr bool takes_request = std::is_invocable_r_v<Response, const F&, Connection&, const Request&>;
  template <class F, class Connection>
  static constexpr bool takes_delivery =
      std::is_invocable_r_v<Response, const F&, Connection&, const Request&, Delivery&>;

  template <class F, class Connection>
  static Response answer_of(const F& handler, Connection& connection, const Request& request, Delivery& delivery) {
    if constexpr (takes_delivery<F, Connection>) {
      return handler(connection, request, delivery);
    } else {
      return handler(connection, request);
    }
  }

  /// Runs a handler inside the transaction, and keeps its answer.
  class Keep {
   public:
    explicit Keep(const Guard& guard);
    ~Keep();
    Keep(const Keep&) = delete;
    Keep& operator=(const Keep&) = delete;
    void operator()(Delivery& delivery, const std::function<Response()>& handler) const;

   private:
    friend class Guard;
    std::unique_ptr<detail::Exchange> exchange_;
  };

  Response handle_in_transaction(const Request& request, const Keep& keep, const Handler& handler);
  Response handle_under_lease(const Request& request, const std::function<Response(Lease&)>& handler);

  std::unique_ptr<Impl> impl_;
};

/// Tokens that the service gives out before the request, for example in a form. Nothing is stored when one is issued.
/// The claim in the handler's transaction makes a token take effect once: a request that failed can be sent again with
/// its token. A token that was used replays the answer. A token is the time of its end, 16 random bytes, and
/// an HMAC-SHA256 over them, the scope and the route.
///
/// @threads any number.
class Tokens {
 public:
  /// @param secrets the first one signs; all of them verify, so that a secret can be replaced.
  /// @param valid   how long a token can be used, from one second to 100 years.
  /// @errors `Error` invalid_argument if there is no secret, one has less than 32 bytes, or `valid` is out of range.
  Tokens(std::vector<std::string> secrets, std::chrono::seconds valid);

  /// A new token: 75 characters of Base64url.
  ///
  /// @errors `Error` invalid_argument if the system gives no random bytes.
  std::string issue(std::string_view scope, std::string_view route) const;

  /// Takes the token from a header field and verifies it. A token that is forged, or of another scope or route, gets
  /// 400. After its end, a token that was used still replays its answer as long as its row is kept. A token that was
  /// not used gets 400 then, and no handler runs.
  ///
  /// Keep the rows longer than tokens are valid, by as long as a client may send a request again. Without the row, a
  /// token that is over is refused, also if it was used: a client that then gets a new token has its effect twice.
  KeyOf key(ScopeOf scope, std::string route, std::string header = "Idempotency-Key") const;

 private:
  std::vector<std::string> secrets_;
  std::chrono::seconds valid_;
};

}  // namespace http
TXINBOX_API_END
}  // namespace txinbox
