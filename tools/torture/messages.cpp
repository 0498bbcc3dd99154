#include "torture/messages.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "torture/message_line.hpp"

namespace txinbox::torture {
namespace {

using Json = nlohmann::json;

Json as_json(const Answer& answer) {
  return {static_cast<int>(answer.outcome),
          static_cast<int>(answer.action),
          answer.stored ? Json(*answer.stored) : Json(),
          static_cast<int>(answer.failure),
          answer.why,
          answer.retry_after.count()};
}

Answer answer_of(const Json& json) {
  Answer answer{.outcome = static_cast<Outcome>(json.at(0).get<int>()),
                .action = static_cast<Action>(json.at(1).get<int>()),
                .failure = static_cast<Failure>(json.at(3).get<int>()),
                .why = json.at(4).get<std::string>(),
                .retry_after = std::chrono::milliseconds(json.at(5).get<std::int64_t>())};
  if (!json.at(2).is_null()) answer.stored = json.at(2).get<std::string>();
  return answer;
}

}  // namespace

Message message_of(const KeyPlan& plan, const Arrival& arrival) {
  const Transfer& transfer = plan.transfer;
  Message message{.business_key = plan.business_key,
                  .message_id = fmt::format("message-{}-{}", arrival.key, arrival.copy)};
  if (plan.has_content) {
    const auto amount = transfer.amount + (arrival.is_altered ? 1 : 0);
    message.content = fmt::format("{} from {} to {}", amount, transfer.from, transfer.to);
  }
  return message;
}

std::string to_line(const Assignment& assignment) {
  Json arrivals = Json::array();
  for (const Arrival& a : assignment.arrivals) arrivals.push_back({a.key, a.copy, a.tries, a.is_altered, a.redrives});
  return as_line({{"number", assignment.number},
                  {"batch", assignment.is_batch},
                  {"at_once", assignment.is_at_once},
                  {"skip", assignment.skips_failures},
                  {"repaired_below", assignment.repaired_below},
                  {"death", static_cast<int>(assignment.death)},
                  {"arrivals", std::move(arrivals)}});
}

std::string to_line(const Reply& reply) {
  Json answers = Json::array();
  for (const Answer& answer : reply.answers) answers.push_back(as_json(answer));
  const Counters& met = reply.met;
  return as_line({{"number", reply.number},
                  {"answers", std::move(answers)},
                  {"met",
                   {met.retries, met.deadlocks, met.lock_timeouts, met.connections_lost, met.transactions_lost,
                    met.leases_taken_over, met.leases_lost, met.effects_refused}},
                  {"fatal", reply.fatal}});
}

std::optional<Assignment> read_assignment(std::string_view line) {
  return read_line<Assignment>(line, [](const Json& json) {
    Assignment assignment{.number = json.at("number").get<std::uint64_t>(),
                          .is_batch = json.at("batch").get<bool>(),
                          .is_at_once = json.at("at_once").get<bool>(),
                          .skips_failures = json.at("skip").get<bool>(),
                          .repaired_below = json.at("repaired_below").get<std::uint64_t>(),
                          .death = static_cast<Death>(json.at("death").get<int>()),
                          .arrivals = {}};
    for (const Json& a : json.at("arrivals")) {
      assignment.arrivals.push_back({a.at(0).get<std::uint64_t>(), a.at(1).get<unsigned>(), a.at(2).get<unsigned>(),
                                     a.at(3).get<bool>(), a.at(4).get<unsigned>()});
    }
    return assignment;
  });
}

std::optional<Reply> read_reply(std::string_view line) {
  return read_line<Reply>(line, [](const Json& json) {
    Reply reply{.number = json.at("number").get<std::uint64_t>(),
                .answers = {},
                .met = {},
                .fatal = json.at("fatal").get<std::string>()};
    for (const Json& answer : json.at("answers")) reply.answers.push_back(answer_of(answer));
    const Json& met = json.at("met");
    reply.met = {.retries = met.at(0).get<std::uint64_t>(),
                 .deadlocks = met.at(1).get<std::uint64_t>(),
                 .lock_timeouts = met.at(2).get<std::uint64_t>(),
                 .connections_lost = met.at(3).get<std::uint64_t>(),
                 .transactions_lost = met.at(4).get<std::uint64_t>(),
                 .leases_taken_over = met.at(5).get<std::uint64_t>(),
                 .leases_lost = met.at(6).get<std::uint64_t>(),
                 .effects_refused = met.at(7).get<std::uint64_t>()};
    return reply;
  });
}

}  // namespace txinbox::torture
