// An HTTP service that accepts each order once.
//
// Usage: order_api DATABASE_URL PORT
// A request is POST /orders {"sku": "tea"} with an Idempotency-Key. The header Tenant names the customer. A real
// service gets this name from its authentication.

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include <soci/soci.h>
#include <txinbox/http.hpp>
#include <txinbox/http/httplib.hpp>
#include <txinbox/soci/execute.hpp>
#include <txinbox/txinbox.hpp>

namespace {

using txinbox::http::Request;
using txinbox::http::Response;

std::string tenant(const Request& request) {
  return std::string(txinbox::http::find_header(request.headers, "Tenant").value_or("public"));
}

/// The article in the body.
std::string sku_in(const Request& request) try {
  return txinbox::JsonDocument(request.body).text("/sku").value_or("");
} catch (const txinbox::Error&) {
  throw txinbox::http::Refusal({.status = 400, .body = "the body must be JSON, and its sku a text"});
}

Response place_order(soci::session& sql, const Request& request, txinbox::Delivery& delivery) {
  const std::string sku = sku_in(request);
  if (sku.empty()) throw txinbox::http::Refusal({.status = 422, .body = "an order needs a sku"});
  sql << "update t_order_number set last_no = last_no + 1";
  long long no = 0;
  sql << "select last_no from t_order_number", soci::into(no);
  txinbox::execute(sql, delivery, "insert into t_order(no, sku) values (:no, :sku)", no, sku);
  return {.status = 201,
          .headers = {{"Content-Type", "application/json"}, {"Location", "/orders/" + std::to_string(no)}},
          .body = "{\"no\":" + std::to_string(no) + "}"};
}

void create_tables(txinbox::Pool& pool) {
  auto connection = pool.acquire();
  txinbox::migrate(connection);
  soci::session& sql = connection.session();
  sql << "create table if not exists t_order (no bigint primary key, sku varchar(64))";
  sql << "create table if not exists t_order_number (last_no bigint)";
  sql << "insert into t_order_number select 0 where not exists (select * from t_order_number)";
}

void serve(const char* url, int port) {
  txinbox::Pool pool = txinbox::open_pool(url, {.connections = 8});
  create_tables(pool);
  txinbox::TxConsumer consumer(pool, "POST /orders", {.claim_wait = std::chrono::milliseconds(0)});
  txinbox::http::Guard guard(consumer, tenant);

  httplib::Server server;
  server.set_payload_max_length(1024UL * 1024);
  server.set_tcp_nodelay(true);
  server.Post("/orders", txinbox::http::httplib_route(guard, place_order));
  txinbox::Pool for_operators = txinbox::open_pool(url, {.connections = 4});
  txinbox::http::OperatorPage page(for_operators, {.path = "/txinbox", .anyone_may_read = true});
  txinbox::http::mount_page(server, page, "/txinbox");
  if (!server.bind_to_port("127.0.0.1", port)) {
    throw std::runtime_error("cannot listen on port " + std::to_string(port));
  }
  std::printf("listening on 127.0.0.1:%d\n", port);
  std::fflush(stdout);
  server.listen_after_bind();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: order_api DATABASE_URL PORT\n", stderr);
    return 2;
  }
  try {
    serve(argv[1], std::atoi(argv[2]));
    return 0;
  } catch (...) {
    std::fprintf(stderr, "order_api: %s\n", txinbox::describe_error(std::current_exception()).c_str());
    return 1;
  }
}
