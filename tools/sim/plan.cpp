#include "sim/plan.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include <fmt/format.h>

namespace txinbox::sim {

using namespace std::chrono_literals;

namespace {

using Remove = void (*)(Plan&);

constexpr std::array<std::pair<std::string_view, Remove>, 12> faults = {{
    {"kills", [](Plan& plan) { plan.kill_every = {}; }},
    {"stops", [](Plan& plan) { plan.stop_every = {}; }},
    {"restarts", [](Plan& plan) { plan.restart_every = {}; }},
    {"moves", [](Plan& plan) { plan.move_every = {}; }},
    {"resends", [](Plan& plan) { plan.resend_rate = 0; }},
    {"lost-requests", [](Plan& plan) { plan.database.lose_request = 0; }},
    {"lost-replies", [](Plan& plan) { plan.database.lose_reply = 0; }},
    {"late-commits", [](Plan& plan) { plan.database.commit_late = 0; }},
    {"refusals", [](Plan& plan) { plan.database.refuse = 0; }},
    {"lost-acknowledgements", [](Plan& plan) { plan.broker.lose_acknowledgement = 0; }},
    {"refused-letters", [](Plan& plan) { plan.broker.refuse_dead_letter = 0; }},
    {"switches", [](Plan& plan) { plan.switch_rate = 0; }},
}};

constexpr auto names = [] {
  std::array<std::string_view, faults.size()> all;
  std::ranges::transform(faults, all.begin(), &std::pair<std::string_view, Remove>::first);
  return all;
}();

}  // namespace

Plan Plan::of(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto number = [&](std::size_t from, std::size_t to) { return from + random() % (to - from + 1); };
  const auto share = [&] { return std::uniform_real_distribution<>()(random); };
  const auto rate = [&](double most) { return random() % 2 == 0 ? 0 : most * share(); };
  const auto every = [&](SimTime shortest) {
    return random() % 2 == 0 ? SimTime(0)
                             : shortest + SimTime(random() % static_cast<std::uint64_t>((10 * shortest).count()));
  };
  Plan plan{.seed = seed, .personality = &personalities[random() % personalities.size()]};
  plan.lanes = number(1, 8);
  plan.processes = number(1, 4);
  plan.workers = number(1, 3);
  plan.batch = random() % 2 == 0 ? 1 : number(2, 20);
  plan.messages = number(200, 1000);
  plan.faults_end = std::chrono::seconds(number(10, 120));
  plan.switch_rate = rate(0.2);
  plan.resend_rate = rate(0.3);
  plan.kill_every = every(500ms);
  plan.stop_every = every(1s);
  plan.restart_every = every(3s);
  plan.move_every = every(200ms);
  plan.database = {.lose_request = rate(0.02),
                   .lose_reply = rate(0.02),
                   .commit_late = rate(0.05),
                   .refuse = rate(0.02),
                   .slowest = std::chrono::microseconds(number(50, 5000))};
  if (random() % 2 == 0) plan.max_in_flight = number(1, 40);
  if (random() % 2 == 0) plan.max_waiting = number(1, 40);
  plan.broker = {.lose_acknowledgement = rate(0.2), .refuse_dead_letter = rate(0.5)};
  return plan;
}

bool Plan::remove_fault(std::string_view name) {
  const auto found = std::ranges::find(faults, name, &std::pair<std::string_view, Remove>::first);
  if (found == faults.end()) return false;
  found->second(*this);
  return true;
}

std::string Plan::text() const {
  return fmt::format("{}, {} lanes, {} services of {} workers, batches of {}, {} messages", personality->name, lanes,
                     processes, workers, batch, messages);
}

std::span<const std::string_view> fault_names() noexcept { return names; }

}  // namespace txinbox::sim
