#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/message.hpp>

#include "cli/consume/message_reader.hpp"
#include "cli/sql/bind.hpp"
#include "console/line_reader.hpp"

namespace txinbox::cli {

/// A line that is a message or ought to be one.
struct Line {
  std::size_t number = 0;   // from 1
  std::size_t through = 0;  // the number of the last empty line behind it
  std::string key = {};     // of a line that is no message: what could be read of it
  std::string wrong = {};   // why it is none; empty where it is one

  bool is_message() const { return wrong.empty(); }
};

/// What was read and is to be consumed together.
struct Batch {
  std::vector<Line> lines;
  std::vector<Message> messages;  // of the lines that are one, in order
  std::vector<Values> values;     // of each message
  std::size_t empty_through = 0;  // the last empty line before the first one of `lines`; 0: none
};

/// Takes the lines that are there, as far as a batch goes, and waits for the first one only.
class BatchReader {
 public:
  struct Limits {
    std::size_t lines;           // a batch has no more
    std::size_t bytes;           // a batch that has reached them is full
    bool ends_at_wrong = false;  // a line that is no message ends its batch
  };

  BatchReader(LineReader& lines, const MessageReader& messages, Limits limits)
      : lines_(lines), messages_(messages), limits_(limits) {}

  enum class Status { more, end, stopped, error };  // what comes behind the batch; as LineReader's

  Status next(Batch& batch);

 private:
  void add(Batch& batch, std::string_view line, bool too_long);

  LineReader& lines_;
  const MessageReader& messages_;
  Limits limits_;
};

}  // namespace txinbox::cli
