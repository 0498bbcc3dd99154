// Adds a message to the outbox, and sends it to a webhook.
//
// Usage: webhook_relay URL

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <mutex>

#include <soci/soci.h>
#include <txinbox/http/httplib_sender.hpp>
#include <txinbox/http_publisher.hpp>
#include <txinbox/txinbox.hpp>

namespace {

/// Returns whether the webhook has accepted the message within a minute.
bool send_one(const char* url) {
  auto pool = txinbox::open_pool("sqlite:orders.db");
  txinbox::migrate(pool.acquire());
  const txinbox::HttpPublisherOptions webhook = txinbox::http_publisher_options_from_url(url);
  const auto publish = txinbox::http_publisher(webhook, txinbox::http::httplib_sender(webhook));

  std::mutex mutex;
  std::condition_variable changed;
  bool is_published = false;
  const auto observe = [&](const txinbox::RelayEvent& event) {
    if (event.type != txinbox::RelayEventType::published) return;
    const std::lock_guard lock(mutex);
    is_published = true;
    changed.notify_all();
  };
  txinbox::OutboxRelay relay(pool, publish, {.listeners = {txinbox::on_event(observe)}});
  {
    auto connection = pool.acquire();
    txinbox::Outbox::add(connection.session(), {.topic = "stock", .key = "order1", .payload = "{\"no\":\"order1\"}"});
  }
  relay.wake();
  std::unique_lock lock(mutex);
  return changed.wait_for(lock, std::chrono::minutes(1), [&] { return is_published; });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: webhook_relay URL\n", stderr);
    return 2;
  }
  try {
    return send_one(argv[1]) ? 0 : 1;
  } catch (...) {
    std::fprintf(stderr, "webhook_relay: %s\n", txinbox::describe_error(std::current_exception()).c_str());
    return 1;
  }
}
