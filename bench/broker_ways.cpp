#include "broker_ways.hpp"

#include <stdexcept>
#include <stop_token>

#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "business_work.hpp"
#include "by_hand.hpp"
#include "effects.hpp"

namespace txinbox::bench {
namespace {

constexpr std::size_t batch = 100;
constexpr std::chrono::seconds longest_wait{30};

}  // namespace

BrokerWays::BrokerWays(const Target& target, const BrokerOptions& options, KeyOf key_of)
    : options_(options),
      key_of_(key_of),
      name_(target.name),
      database_(target),
      pool_(database_.pool(workers)),
      checking_(pool_.acquire()) {}

nlohmann::ordered_json BrokerWays::in_turns(const std::vector<Way>& ways) const {
  auto rates = nlohmann::ordered_json::object();
  Progress progress("rounds", options_.rounds);
  for (int round = 0; round < options_.rounds; ++round) {
    rotated(ways.size(), round, [&](std::size_t i) {
      // The name of the database is in it, because the broker is the same for all databases.
      rates[ways[i].name].push_back(ways[i].measure(fmt::format("{}-{}-{}", name_, ways[i].name, round)));
    });
    progress.step();
  }
  return {{"messages_per_second", rates}};
}

Meter BrokerWays::meter() const { return Meter(std::chrono::milliseconds(options_.slot_ms), options_.messages); }

double BrokerWays::source_alone(Source& source) {
  Meter meter = this->meter();
  auto last = Clock::now();
  for (bool goes_on = true; goes_on;) {
    const std::vector<Incoming> messages = source.poll(batch, std::chrono::seconds(1));
    std::vector<const Incoming*> done;
    for (const Incoming& each : messages) {
      goes_on = meter.count() && goes_on;
      done.push_back(&each);
    }
    if (!done.empty()) {
      source.acknowledge(done);
      last = Clock::now();
    } else if (Clock::now() - last > longest_wait) {
      throw std::runtime_error("the broker has too few messages");
    }
  }
  const double rate = meter.per_second();
  acknowledged_ += meter.done();
  source.close();
  return rate;
}

double BrokerWays::empty_handler(const std::string& slot, Source& source) {
  const Handler handler = [](soci::session&, Delivery&) {};
  return loop(slot, source, 1, handler, 0);
}

double BrokerWays::run(const std::string& slot, Source& source, std::size_t threads) {
  return loop(slot, source, threads, business_handler(), 1);
}

double BrokerWays::by_hand(const std::string& slot, const std::function<std::string()>& next,
                           const std::function<void()>& acknowledge) {
  const Connection connection = pool_.acquire();
  const auto api = client_api(connection);
  Effects effects(checking_);
  Meter meter = this->meter();
  for (bool goes_on = true; goes_on;) {
    if (!consume_by_hand(*api, {.business_key = slot + next()})) throw std::runtime_error("a duplicate");
    acknowledge();
    goes_on = meter.count();
  }
  const double rate = meter.per_second();
  acknowledged_ += meter.done();
  effects.expect_updates(slot, meter.done());
  return rate;
}

/// `updates`: the number of updates for each message.
double BrokerWays::loop(const std::string& slot, Source& source, std::size_t threads, const Handler& handler,
                        int updates) {
  Effects effects(checking_);
  std::stop_source stop;
  TxConsumer consumer(pool_, "bench", {.stop = stop.get_token()});
  Meter meter = this->meter();
  const MessageOf message_of = [&](const Incoming& in) {
    if (!meter.count()) stop.request_stop();
    return Message{.business_key = slot + std::string(key_of_(in))};
  };
  const auto summary = txinbox::run(source, consumer, message_of, handler,
                                    {.batch = batch,
                                     .workers = threads,
                                     .order = threads > 1 ? Ordering::key : Ordering::lane,
                                     .idle_exit = longest_wait,
                                     .dead_letter = [](const DeadLetter&) {}});
  const double rate = meter.per_second(static_cast<long long>(summary.consumed));
  acknowledged_ += static_cast<long long>(summary.acknowledged);
  if (summary.end != RunEnd::stopped) throw std::runtime_error(slot + ": the broker has too few messages");
  // A broker may deliver a message twice. Such a message is acknowledged and does not count.
  if (summary.acknowledged != summary.consumed + summary.already_consumed)
    throw std::runtime_error(slot + ": not all was consumed and acknowledged");
  effects.expect_updates(slot, static_cast<long long>(summary.consumed) * updates);
  return rate;
}

}  // namespace txinbox::bench
