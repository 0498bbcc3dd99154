#include "torture/redrive_messages.hpp"

#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "torture/message_line.hpp"

namespace txinbox::torture {
namespace {

using Json = nlohmann::json;

Json as_json(const std::vector<RedriveMessage>& messages) {
  Json all = Json::array();
  for (const RedriveMessage& each : messages) all.push_back({each.id, each.body, each.destination, each.headers});
  return all;
}

std::vector<RedriveMessage> messages_of(const Json& json) {
  std::vector<RedriveMessage> messages;
  for (const Json& each : json) {
    messages.push_back({.id = each.at(0).get<std::uint64_t>(),
                        .body = each.at(1).get<std::string>(),
                        .destination = each.at(2).get<std::string>(),
                        .headers = each.at(3).get<std::vector<std::pair<std::string, std::string>>>()});
  }
  return messages;
}

}  // namespace

std::string payload_of(const Arrival& arrival) {
  return fmt::format("{} {} {} {}", arrival.key, arrival.copy, arrival.tries, arrival.redrives);
}

std::optional<Arrival> read_arrival(std::string_view payload) {
  Arrival arrival;
  const char* at = payload.data();
  const char* const end = at + payload.size();
  const auto take = [&](auto& number, bool is_last) {
    const auto [next, error] = std::from_chars(at, end, number);
    const bool is_right = error == std::errc() && (is_last ? next == end : next != end && *next == ' ');
    at = is_last ? next : next + 1;
    return is_right;
  };
  if (!take(arrival.key, false) || !take(arrival.copy, false) || !take(arrival.tries, false)) return std::nullopt;
  if (!take(arrival.redrives, true)) return std::nullopt;
  return arrival;
}

std::string to_line(const Question& question) {
  return as_line({{"ask", static_cast<int>(question.ask)},
                  {"most", question.most},
                  {"messages", as_json(question.messages)},
                  {"fatal", question.fatal}});
}

std::string to_line(const QuestionAnswer& answer) {
  return as_line({{"letters", as_json(answer.letters)}, {"accepted", answer.accepted}});
}

std::optional<Question> read_question(std::string_view line) {
  return read_line<Question>(line, [](const Json& json) {
    return Question{.ask = static_cast<Ask>(json.at("ask").get<int>()),
                    .most = json.at("most").get<std::size_t>(),
                    .messages = messages_of(json.at("messages")),
                    .fatal = json.at("fatal").get<std::string>()};
  });
}

std::optional<QuestionAnswer> read_question_answer(std::string_view line) {
  return read_line<QuestionAnswer>(line, [](const Json& json) {
    return QuestionAnswer{.letters = messages_of(json.at("letters")),
                          .accepted = json.at("accepted").get<std::vector<bool>>()};
  });
}

}  // namespace txinbox::torture
