#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "torture/messages.hpp"

namespace txinbox::torture {

// The messages between the broker and an operator that runs `redrive`. Each is a line of JSON. The operator asks, and
// the broker answers each question.

/// The queue from which the storm's dead letters come.
inline constexpr const char* redrive_queue = "txinbox-torture";

/// The payload of a message: which copy of which key it is.
std::string payload_of(const Arrival& arrival);

/// Errors: none. If the text is not a payload, it returns nothing.
std::optional<Arrival> read_arrival(std::string_view payload);

/// A dead letter, or a message that is published again.
struct RedriveMessage {
  std::uint64_t id = 0;  ///< Of the dead letter. 0: the message is from the outbox.
  std::string body;
  std::string destination = {};  ///< Where it is published.
  std::vector<std::pair<std::string, std::string>> headers = {};

  bool operator==(const RedriveMessage&) const = default;
};

/// The request of an operator.
enum class Ask {
  poll,         ///< For dead letters.
  publish,      ///< To publish messages again.
  acknowledge,  ///< To remove dead letters.
  give_back,    ///< To take back all dead letters that the operator holds.
};

struct Question {
  Ask ask = Ask::poll;
  std::size_t most = 0;  ///< With `poll`.
  std::vector<RedriveMessage> messages = {};
  std::string fatal = {};  ///< Not empty: why the operator cannot go on. There is no answer.
};

struct QuestionAnswer {
  std::vector<RedriveMessage> letters = {};  ///< To `poll`.
  std::vector<bool> accepted = {};           ///< To `publish`: for each message, whether the broker has it now.
};

std::string to_line(const Question&);
std::string to_line(const QuestionAnswer&);

/// Errors: none. If the line is incomplete or is not such a message, it returns nothing.
std::optional<Question> read_question(std::string_view line);
std::optional<QuestionAnswer> read_question_answer(std::string_view line);

}  // namespace txinbox::torture
