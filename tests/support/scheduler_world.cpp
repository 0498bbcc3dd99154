#include "support/scheduler_world.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace txinbox::test {

using namespace std::chrono_literals;
using detail::Job;

SchedulerWorld::SchedulerWorld(std::size_t lanes, std::size_t per_lane, const RunOptions& options, std::size_t job_size,
                               bool can_rewind, std::uint32_t seed, int parks_after)
    : scheduler(options, job_size, parks_after, can_rewind, seed),
      options_(options),
      parks_after_(parks_after),
      job_size_(job_size),
      has_lanes_(lanes > 0),
      per_lane_(per_lane),
      lanes_(std::max<std::size_t>(lanes, 1)) {
  for (std::size_t place = 0; !has_lanes_ && place < per_lane; ++place) queue_.push_back(place);
}

RunOptions SchedulerWorld::options_of_test() {
  return {.workers = 2, .max_in_flight = 8, .max_waiting = 8, .backoff = 200ms, .max_backoff = 1s};
}

void SchedulerWorld::wrong(std::string text) {
  if (problem_.empty()) problem_ = std::move(text);
}

std::string SchedulerWorld::key_of(std::size_t place) { return "k" + std::to_string(place % 2); }

SchedulerWorld::Id SchedulerWorld::id_of(const Incoming& incoming) {
  const std::string_view id = incoming.id;
  const auto at = id.find('@');
  return {std::stoul(std::string(id.substr(0, at))), std::stoul(std::string(id.substr(at + 1)))};
}

std::string SchedulerWorld::sequence_of(const Incoming& incoming) const {
  if (!incoming.lane) return std::to_string(incoming.ticket);  // no order, not even with another delivery of it
  return std::to_string(*incoming.lane) + (options_.order == Ordering::key ? std::string(*incoming.key) : "");
}

void SchedulerWorld::deliver(const Id& id) {
  struct Bytes {
    std::string id, key;
  };
  auto bytes = std::make_shared<Bytes>(Bytes{fmt::format("{}@{}", id.first, id.second), key_of(id.second)});
  Incoming incoming{.body = bytes->id, .key = bytes->key, .id = bytes->id, .ticket = ++tickets_};
  if (has_lanes_) incoming.lane = id.first;
  incoming.owner = bytes;
  held_[incoming.ticket] = id;
  ticket_of_[id] = incoming.ticket;
  Message message{.business_key = bytes->id};
  scheduler.add(std::move(incoming), std::move(message), now);
  sleeps_until_.reset();
}

bool SchedulerWorld::poll(std::size_t most) {
  std::size_t room = scheduler.has_ended() ? 0 : std::min(most, scheduler.room());
  const bool had_room = room > 0;
  const std::size_t before = tickets_;
  for (; !has_lanes_ && room > 0 && !queue_.empty(); --room) {
    deliver({0, queue_.front()});
    queue_.pop_front();
  }
  for (std::size_t lane = 0; has_lanes_ && lane < lanes_.size(); ++lane) {
    for (; room > 0 && !lanes_[lane].is_paused && lanes_[lane].next < per_lane_; --room) {
      deliver({lane, lanes_[lane].next++});
    }
  }
  most_held = std::max(most_held, held_.size());
  if (had_room && held_.size() > options_.max_in_flight + options_.max_waiting) wrong("too many messages are held");
  return tickets_ != before;
}

void SchedulerWorld::acknowledge(const Incoming& incoming) {
  const Id id = id_of(incoming);
  if (!is_held(incoming)) return;  // the source drops it
  if (!ended_.contains(id)) wrong(fmt::format("{} was acknowledged before it ended", incoming.id));
  if (has_lanes_ && lanes_[id.first].acknowledged != id.second) {
    wrong(fmt::format("{} was acknowledged after {} messages", incoming.id, lanes_[id.first].acknowledged));
  }
  lanes_[id.first].acknowledged = has_lanes_ ? id.second + 1 : lanes_[0].acknowledged + 1;
  if (!done_.insert(id).second) wrong(fmt::format("{} was acknowledged twice", incoming.id));
  held_.erase(incoming.ticket);
}

bool SchedulerWorld::settle() {
  for (const detail::Occurrence& each : scheduler.take_occurrences()) events.push_back(each.type);
  const detail::Settlement settlement = scheduler.take_settlement(now);
  for (const auto& entry : settlement.acknowledge) acknowledge(entry->incoming);
  for (const auto lane : settlement.lost) lanes_.at(lane).is_paused = false;
  for (const auto lane : settlement.pause) {
    if (std::exchange(lanes_.at(lane).is_paused, true)) wrong(fmt::format("lane {} is paused twice", lane));
    ++pauses;
  }
  for (const auto& entry : settlement.rewind) {
    const Id id = id_of(entry->incoming);
    has_lost_ = true;
    if (!lanes_[id.first].is_paused) wrong(fmt::format("{} is read again, but its lane is not paused", id.first));
    std::erase_if(held_, [&](const auto& each) { return each.second.first == id.first && each.second >= id; });
    lanes_[id.first].next = id.second;
  }
  for (const auto lane : settlement.resume) lanes_.at(lane).is_paused = false;
  return !settlement.acknowledge.empty() || !settlement.pause.empty() || !settlement.resume.empty();
}

bool SchedulerWorld::publish_dead_letters() {
  const auto letters = scheduler.take_dead_letters(now);
  for (const auto& entry : letters) {
    if (refuses_dead_letters) {
      scheduler.dead_letter_failed(entry, {}, now);
    } else {
      ended_.insert(id_of(entry->incoming));
      dead.insert(id_of(entry->incoming));
      scheduler.dead_letter_confirmed(entry);
    }
  }
  return !letters.empty();
}

void SchedulerWorld::check_order(const Job& job) {
  if (job.size() > job_size_) wrong("a job is too large");
  std::set<std::string> others;
  for (const Job& each : jobs_) {
    for (const auto& entry : each) others.insert(sequence_of(entry->incoming));
  }
  std::set<Id> earlier_in_job;
  for (const auto& entry : job) {
    const Id id = id_of(entry->incoming);
    if (others.contains(sequence_of(entry->incoming))) {
      wrong(fmt::format("{} runs beside a message of its sequence", entry->incoming.id));
    }
    for (std::size_t place = 0; has_lanes_ && place < id.second; ++place) {
      const Id earlier{id.first, place};
      const bool in_sequence = options_.order == Ordering::lane || key_of(place) == key_of(id.second);
      const bool is_passed = decided_.contains(earlier) || aside_.contains(earlier);
      if (in_sequence && !is_passed && !earlier_in_job.contains(earlier)) {
        wrong(fmt::format("{} runs before {}@{}", entry->incoming.id, id.first, place));
      }
    }
    earlier_in_job.insert(id);
  }
}

bool SchedulerWorld::begin_job() {
  if (jobs_.size() == options_.workers || (sleeps_until_ && now < *sleeps_until_)) return false;
  detail::Scheduler::Next next = scheduler.next(now);
  Job* const job = std::get_if<Job>(&next);
  if (const auto* const wait = std::get_if<detail::Scheduler::Wait>(&next)) {
    sleeps_until_ = wait->until.value_or(Time::max());
  }
  if (job == nullptr) return false;
  check_order(*job);
  if (scheduler.has_ended()) wrong("a job begins after the end");
  jobs_.push_back(std::move(*job));
  return true;
}

bool SchedulerWorld::end_job(std::size_t number) {
  for (auto job = jobs_.begin(); job != jobs_.end(); ++job) {
    const bool ends =
        std::ranges::none_of(*job, [&](const auto& each) { return endless.contains(id_of(each->incoming)); });
    if (!ends || number-- > 0) continue;
    const Job ended = std::move(*job);
    jobs_.erase(job);
    scheduler.finished(ended, result_of(ended), now);
    sleeps_until_.reset();
    return true;
  }
  return false;
}

bool SchedulerWorld::turn() {
  bool did = settle();
  did = publish_dead_letters() || did;
  did = settle() || did;
  did = poll() || did;
  while (begin_job()) did = true;
  if (!jobs_.empty()) now += job_time;
  return end_job() || did;
}

void SchedulerWorld::run_for(std::chrono::milliseconds time) {
  for (const Time end = now + time; now < end && problem_.empty();) {
    if (turn()) continue;
    const bool is_done = scheduler.has_ended() ? jobs_.empty() : scheduler.is_empty();
    now = is_done ? end : now + 50ms;
  }
}

void SchedulerWorld::lose(const Id& id) {
  has_lost_ = true;
  const auto ticket = ticket_of_.find(id);
  if (ticket == ticket_of_.end() || held_.erase(ticket->second) == 0) return;
  if (has_lanes_) {
    lanes_[id.first].next = std::min(lanes_[id.first].next, id.second);
  } else {
    queue_.push_back(id.second);
  }
  const detail::Lost lost = scheduler.forget_lost([&](const Incoming& each) { return is_held(each); });
  for (const auto& entry : lost.give_back) {
    if (held_.erase(entry->incoming.ticket) == 0) wrong("a message is given back that the source does not hold");
  }
  for (const auto& [each, held] : held_) {
    if (has_lanes_ && held.first == id.first && held > id) wrong("a message behind a lost one is still held");
  }
}

void SchedulerWorld::revoke(std::size_t lane) {
  has_lost_ = true;
  std::erase_if(held_, [&](const auto& each) { return each.second.first == lane; });
  lanes_[lane].next = lanes_[lane].acknowledged;
  lanes_[lane].is_paused = false;
  static_cast<void>(scheduler.forget_lost([&](const Incoming& each) { return is_held(each); }));
}

std::optional<SchedulerWorld::Id> SchedulerWorld::held(std::size_t number) const {
  if (held_.empty()) return std::nullopt;
  return std::next(held_.begin(), static_cast<std::ptrdiff_t>(number % held_.size()))->second;
}

std::size_t SchedulerWorld::acknowledged(std::size_t lane) const { return lanes_.at(lane).acknowledged; }

std::size_t SchedulerWorld::acknowledged_in_all() const { return done_.size(); }

int SchedulerWorld::runs(const Id& id) const {
  const auto found = runs_.find(id);
  return found == runs_.end() ? 0 : found->second;
}

}  // namespace txinbox::test
