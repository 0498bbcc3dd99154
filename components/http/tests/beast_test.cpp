// The adapter to Boost.Beast, with requests and answers through a socket.

#include <chrono>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <txinbox/http/beast.hpp>
#include <txinbox/txinbox.hpp>

#include "service.hpp"
#include "support/effects.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;
using boost::asio::ip::tcp;
namespace beast = boost::beast;

/// Serves this number of connections, with one request each.
void serve(tcp::acceptor& acceptor, http::Guard& guard, int connections) {
  for (int i = 0; i < connections; ++i) {
    tcp::socket socket = acceptor.accept();
    beast::flat_buffer buffer;
    beast::http::request<beast::http::string_body> request;
    beast::http::read(socket, buffer, request);
    const auto place_order = [](soci::session& sql, const http::Request& order) {
      sql << "insert into effect values (:id)", soci::use(order.body);
      return http::Response{.status = 201, .headers = {{"Location", "/orders/1"}}, .body = order.target};
    };
    auto response = http::to_beast(guard.handle(http::from_beast(request), place_order), request);
    response.keep_alive(false);
    beast::http::write(socket, response);
    socket.shutdown(tcp::socket::shutdown_send);
  }
}

TEST_CASE("a service on Boost.Beast replays its answers") {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  TxConsumer consumer(pool, "POST /orders", {.claim_wait = 0ms});
  http::Guard guard(consumer, [](const http::Request&) { return "all"; });
  boost::asio::io_context context;
  tcp::acceptor acceptor(context, tcp::endpoint(boost::asio::ip::make_address("127.0.0.1"), 0));
  const int port = acceptor.local_endpoint().port();
  const std::jthread server([&] { serve(acceptor, guard, 3); });

  const auto first = post(port, "/orders?a=1", "book", {{"Idempotency-Key", "k"}});
  CHECK(first.status == 201);
  CHECK(first.body == "/orders?a=1");
  CHECK(field(first, "Location") == "/orders/1");
  const auto again = post(port, "/orders?a=1", "book", {{"Idempotency-Key", "k"}});
  CHECK(again.body == first.body);
  CHECK(field(again, "Idempotent-Replayed") == "true");
  CHECK(post(port, "/orders?a=2", "book", {{"Idempotency-Key", "k"}}).status == 422);
  CHECK(db.effects() == 1);
}

}  // namespace
}  // namespace txinbox::test
