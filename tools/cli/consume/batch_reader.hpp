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

/// A line of the input. It should be a message.
struct Line {
  std::size_t number = 0;   // from 1
  std::size_t through = 0;  // the number of the last empty line that follows it
  std::string key = {};     // of an invalid line: the key, if it could be read
  std::string wrong = {};   // why the line is invalid; empty if it is a message
  bool ends_input = false;  // the line is invalid, and so is the whole input: it is not JSON lines

  bool is_message() const { return wrong.empty(); }
};

/// Lines that are consumed together.
struct Batch {
  std::vector<Line> lines;
  std::vector<Message> messages;  // one for each valid line, in order
  std::vector<Values> values;     // of each message
  std::size_t empty_through = 0;  // the number of the last empty line before the first of `lines`; 0: none
};

/// Makes batches of lines. It waits only for the first line of a batch, and then takes the lines that have arrived
/// already. The first line of an input that is not JSON lines ends its batch.
class BatchReader {
 public:
  struct Limits {
    std::size_t lines;           // the most lines of a batch
    std::size_t bytes;           // a batch with this many bytes is full
    bool ends_at_wrong = false;  // an invalid line ends its batch
  };

  BatchReader(LineReader& lines, const MessageReader& messages, Limits limits)
      : lines_(lines), messages_(messages), limits_(limits) {}

  enum class Status { more, end, stopped, error };  // what follows the batch; as LineReader's

  Status next(Batch& batch);

 private:
  void add(Batch& batch, std::string_view line, bool too_long);

  LineReader& lines_;
  const MessageReader& messages_;
  Limits limits_;
  bool is_first_ = true;  // no line was read yet, apart from empty ones
};

}  // namespace txinbox::cli
