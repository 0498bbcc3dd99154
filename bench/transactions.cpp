#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>
#include <soci/soci.h>

#include "delay_proxy.hpp"
#include "effects.hpp"
#include "sections.hpp"
#include "variants.hpp"

namespace txinbox::bench {
namespace {

bool is_batch(const Variant& variant) { return variant.name.find("batch") != std::string::npos; }

std::vector<Variant> chosen(const Variants& variants, const std::vector<std::string>& names) {
  if (names.empty()) return variants.all();
  std::vector<Variant> result;
  for (const std::string& name : names) {
    const auto at = std::ranges::find(variants.all(), name, &Variant::name);
    if (at == variants.all().end()) throw std::runtime_error("no variant is called " + name);
    result.push_back(*at);
  }
  return result;
}

double run(const Variant& variant, const std::vector<Message>& messages) {
  const auto start = Clock::now();
  variant.run(messages);
  return microseconds_since(start) / static_cast<double>(messages.size());
}

double median_ping(Variants& variants) {
  std::vector<double> times(101);
  for (double& time : times) {
    const auto start = Clock::now();
    variants.ping();
    time = microseconds_since(start);
  }
  std::ranges::nth_element(times, times.begin() + 50);
  return times[50];
}

double median_ping(Pool& pool) {
  Variants variants(pool);
  return median_ping(variants);
}

/// A proxy with which a ping takes this much longer than without the proxy. The time includes the proxy's own work.
struct RoundTrip {
  RoundTrip(const Database& database, std::chrono::microseconds added) : proxy(database.port(), added / 2) {
    Pool straight = database.pool(2);
    direct = median_ping(straight);
    Pool delayed = database.pool_through(proxy.port(), 2);
    const double own_work = median_ping(delayed) - direct - static_cast<double>(added.count());
    const double one_way = static_cast<double>(added.count()) / 2 - own_work / 2;
    proxy.set_one_way(std::chrono::microseconds(std::llround(std::max(one_way, 0.0))));
  }

  DelayProxy proxy;
  double direct = 0;
};

/// The number of messages that take about the time of a slot. It is a multiple of `unit`.
int messages_in_slot(double microseconds, std::chrono::milliseconds slot, int unit) {
  const double units = std::ceil(static_cast<double>(slot.count()) * 1000 / microseconds / unit);
  return unit * static_cast<int>(std::clamp(units, 1.0, 10'000.0 / unit));
}

}  // namespace

Json measure_transactions(const Target& target, const TransactionOptions& options) {
  const Database database(target);
  std::optional<RoundTrip> round_trip;
  if (options.round_trip.count() > 0) round_trip.emplace(database, options.round_trip);
  Pool pool = round_trip ? database.pool_through(round_trip->proxy.port(), 2) : database.pool(2);
  Variants variants(pool);
  const auto all = chosen(variants, options.variants);
  Effects effects(variants.session());
  long long claims = 0;

  // The first messages prepare statements and warm caches.
  std::map<std::string, double> once;
  for (const Variant& each : all) {
    const auto warm = messages(each.name + "-warm", 0, 100);
    once[each.name] = run(each, warm);
    effects.expect_updates(each.name, each.updates ? 100 : 0);
    if (each.claims) claims += 100;
  }
  const auto by_hand = once.find("by_hand");
  const bool has_batches = std::ranges::any_of(all, [](const Variant& v) { return is_batch(v); });
  const int count = messages_in_slot(by_hand == once.end() ? once.begin()->second : by_hand->second, options.slot,
                                     has_batches ? 100 : 10);

  Json fresh = Json::object();
  Json again = Json::object();
  for (const Variant& each : all) {
    fresh[each.name] = Json::array();
    if (each.duplicates && options.duplicates) again[each.name] = Json::array();
  }
  Progress progress("rounds", options.rounds);
  const auto begin = Clock::now();
  for (int round = 0; round < options.rounds; ++round) {
    if (round >= 3 && Clock::now() - begin > options.at_most) break;
    const auto messages_of = [&](const Variant& v) { return messages(v.name, round * count, count); };
    rotated(all.size(), round, [&](std::size_t i) {
      fresh[all[i].name].push_back(run(all[i], messages_of(all[i])));
      effects.expect_updates(all[i].name, all[i].updates ? count : 0);
      if (all[i].claims) claims += count;
    });
    rotated(options.duplicates ? all.size() : 0, round, [&](std::size_t i) {
      if (!all[i].duplicates) return;
      again[all[i].name].push_back(run(all[i], messages_of(all[i])));
      effects.expect_updates(all[i].name + ", duplicates", 0);
    });
    progress.step();
  }
  effects.expect_claims("all variants", claims);

  for (const Variant& each : all) {
    const auto least = static_cast<double>(options.at_least.count());
    if (is_batch(each) || fresh[each.name].empty() || *std::ranges::min_element(fresh[each.name]) >= least) continue;
    throw std::runtime_error(
        fmt::format("{} took less than {} us a message: the delay is not there", each.name, least));
  }
  Json result = {{"messages_per_round", count}, {"new", fresh}, {"duplicate", again}};
  if (round_trip) result["ping"] = {{"direct", round_trip->direct}, {"through_proxy", median_ping(variants)}};
  return result;
}

}  // namespace txinbox::bench
