// A service on Boost.Asio: its coroutines consume without blocking the thread of the event loop.
//
// Usage: async_service [URL]      (by default sqlite:async.db)

#include <exception>
#include <iostream>
#include <string>
#include <utility>

#include <soci/soci.h>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <txinbox/soci/execute.hpp>
#include <txinbox/txinbox.hpp>

namespace {

namespace asio = boost::asio;

// docs/guides/async.md: consume
/// Consumes in a thread of `workers`. The coroutine that awaits it goes on in its own thread. What `consume` throws,
/// the coroutine gets.
asio::awaitable<txinbox::Result> consume_async(asio::thread_pool& workers, txinbox::TxConsumer& consumer,
                                               txinbox::Message message, txinbox::Handler handler) {
  auto blocking = [&]() -> asio::awaitable<txinbox::Result> { co_return consumer.consume(message, handler); };
  co_return co_await asio::co_spawn(workers, std::move(blocking), asio::use_awaitable);
}
// end

// docs/guides/async.md: deliver
asio::awaitable<void> deliver(asio::thread_pool& workers, txinbox::TxConsumer& consumer, std::string order_no) {
  // Not in the call: gcc 12 destroys a temporary in braces of a co_await expression twice.
  txinbox::Message message{.business_key = order_no};
  txinbox::Handler handler = [](soci::session& sql, txinbox::Delivery& d) {
    txinbox::execute(sql, d, "insert into t_order values (:no)", d.message().business_key);
  };
  txinbox::Action action{};
  try {
    const txinbox::Result result = co_await consume_async(workers, consumer, std::move(message), std::move(handler));
    action = txinbox::action_for(result);
  } catch (...) {
    action = txinbox::action_for(std::current_exception());
  }
  std::cout << order_no << ": " << txinbox::to_string(action) << '\n';  // now tell the broker
}
// end

int run(const std::string& url) {
  constexpr int connections = 4;
  auto pool = txinbox::open_pool(url, {.connections = connections});
  {
    auto connection = pool.acquire();
    txinbox::migrate(connection);
    *connection << "create table if not exists t_order (no varchar(64) primary key)";
  }
  // docs/guides/async.md: main
  txinbox::TxConsumer consumer(pool, "order-service");
  asio::io_context loop;                   // the service's own event loop, with one thread
  asio::thread_pool workers(connections);  // one thread for each connection of the pool
  for (int i = 0; i < 20; ++i) {
    asio::co_spawn(loop, deliver(workers, consumer, "order" + std::to_string(i % 10)), [](std::exception_ptr error) {
      if (error) std::rethrow_exception(error);
    });
  }
  loop.run();
  workers.join();  // before the consumer and the pool are destroyed
  // end
  int orders = 0;
  *pool.acquire() << "select count(*) from t_order", soci::into(orders);
  std::cout << orders << " orders\n";
  return orders == 10 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "sqlite:async.db");
  } catch (const std::exception&) {
    std::cerr << "async_service: " << txinbox::describe_error(std::current_exception()) << '\n';
    return 1;
  }
}
