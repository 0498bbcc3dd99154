#include "cli/consume/batch_reader.hpp"

#include <utility>

#include <fmt/format.h>

#include "cli/consume/consume_options.hpp"
#include "cli/consume/input_format.hpp"

namespace txinbox::cli {

void BatchReader::add(Batch& batch, std::string_view text, bool too_long) {
  const std::size_t number = lines_.number();
  Line line{.number = number, .through = number};
  const bool is_first = std::exchange(is_first_, false);
  const auto add_format = [&] {
    if (!is_first) return;
    const InputFormat format = format_of_invalid(text, too_long);
    if (!format.hint.empty()) line.wrong += "; " + format.hint;
    line.ends_input = format.is_not_json_lines;
  };
  if (too_long) {
    line.wrong = fmt::format("longer than {} MiB", max_line_size / 1024 / 1024);
    add_format();
    batch.lines.push_back(std::move(line));
    return;
  }
  Message message;
  try {
    Values values;
    messages_.read(text, message, values);
    batch.values.push_back(std::move(values));
    batch.messages.push_back(std::move(message));
  } catch (const LineError& error) {
    line.key = std::move(message.business_key);
    line.wrong = error.what();
    add_format();
  }
  batch.lines.push_back(std::move(line));
}

BatchReader::Status BatchReader::next(Batch& batch) {
  batch.lines.clear();
  batch.messages.clear();
  batch.values.clear();
  batch.empty_through = 0;
  std::size_t bytes = 0;
  while (batch.lines.size() < limits_.lines && bytes < limits_.bytes) {
    std::string_view text;
    const auto wait = batch.lines.empty() ? LineReader::Wait::yes : LineReader::Wait::no;
    const auto status = lines_.next(text, wait);
    switch (status) {
      case LineReader::Status::none:
        return Status::more;
      case LineReader::Status::end:
        return Status::end;
      case LineReader::Status::stopped:
        return Status::stopped;
      case LineReader::Status::error:
        return Status::error;
      case LineReader::Status::line:
      case LineReader::Status::too_long:
        break;
    }
    const bool too_long = status == LineReader::Status::too_long;
    if (!too_long && text.find_first_not_of(" \t") == std::string_view::npos) {
      (batch.lines.empty() ? batch.empty_through : batch.lines.back().through) = lines_.number();
      continue;
    }
    bytes += text.size();
    add(batch, text, too_long);
    if (batch.lines.back().ends_input || (limits_.ends_at_wrong && !batch.lines.back().is_message())) break;
  }
  return Status::more;
}

}  // namespace txinbox::cli
