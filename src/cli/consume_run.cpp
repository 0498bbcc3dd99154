#include "consume_run.hpp"

#include <optional>
#include <system_error>

#include <fmt/format.h>
#include <soci/soci.h>
#include <nlohmann/json.hpp>
#include <txinbox/error.hpp>

#include "describe_error.hpp"
#include "exit_status.hpp"

namespace txinbox::cli {

int ConsumeRun::run(int input_fd) {
  LineReader reader(input_fd, signals_.wake_fd(), max_line_size);
  std::string line;
  Next next = Next::go_on;
  while (next == Next::go_on) {
    const auto status = reader.next(line);
    if (status == LineReader::Status::end) break;
    line_ = reader.number();
    if (status == LineReader::Status::error) {
      progress_.message(fmt::format("line {}: reading failed: {}", line_ + 1,
                                    std::generic_category().message(reader.error_number())));
      ++tally_.failed;
      next = Next::stop_failed;
      break;
    }
    next = handle(status, line);
    progress_.update(tally_.messages(), last_line_);
    if (next == Next::go_on && (signals_.stopped() || output_.failed())) next = Next::stop_signal;
  }
  return finish(next);
}

ConsumeRun::Next ConsumeRun::handle(LineReader::Status status, const std::string& line) {
  key_.clear();
  switch (status) {
    case LineReader::Status::stopped:
      return Next::stop_signal;
    case LineReader::Status::too_long:
      return fail("invalid", fmt::format("longer than {} MiB", max_line_size / 1024 / 1024));
    default:
      break;
  }
  if (line.find_first_not_of(" \t") == std::string::npos) {
    last_line_ = line_;
    return Next::go_on;
  }
  return consume(line);
}

ConsumeRun::Next ConsumeRun::consume(const std::string& line) {
  MessageReader::Read read;
  try {
    read = messages_.read(line, dialect_, key_);
  } catch (const LineError& error) {
    return fail("invalid", error.what());
  }
  try {
    handler_ran_ = false;
    statement_ = 0;
    const Result result = consumer_.consume(read.message, [&](soci::session& session, Delivery&) {
      handler_ran_ = true;
      statement_ = 0;
      for (const auto& statement : script_.statements) {
        ++statement_;
        execute(session, statement, read.bindings);
      }
      statement_ = 0;
    });
    return settle(result);
  } catch (...) {
    return settle(std::current_exception());
  }
}

ConsumeRun::Next ConsumeRun::settle(const Result& result) {
  switch (result.outcome) {
    case Outcome::consumed:
      ++tally_.consumed;
      break;
    case Outcome::already_consumed:
      ++tally_.already_consumed;
      break;
    case Outcome::conflict:
      ++tally_.conflicts;
      progress_.message(fmt::format("line {}: conflict: the same key came with other content", line_));
      break;
    case Outcome::parked:
      ++tally_.parked;
      progress_.message(fmt::format(
          "line {}: parked: an earlier run was given up, or ended its transaction itself; see txinbox show", line_));
      break;
    default:
      return fail(to_string(result.outcome), "in progress: another worker holds the key; deliver it again");
  }
  const bool well = action_for(result) == Action::acknowledge;
  tell(to_string(result.outcome));
  return well || !options_.stop_on_error ? Next::go_on : Next::stop_failed;
}

ConsumeRun::Next ConsumeRun::settle(const std::exception_ptr& error) {
  std::optional<ErrorCode> code;
  bool inbox_failed = false;
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    code = e.code();
  } catch (const soci::soci_error&) {
    inbox_failed = !handler_ran_;  // the claim: no other message can fare better
  } catch (...) {                  // told by describe_error
  }
  if (code == ErrorCode::stopped) return Next::stop_signal;  // the message was not begun

  std::string why = describe_error(error, options_.verbose);
  if (statement_ != 0) why = fmt::format("statement {}: {}", statement_, why);
  const auto next = fail(code == ErrorCode::invalid_key ? "invalid" : "failed", why);
  if (is_transient(error) && signals_.stopped()) return Next::stop_signal;
  if (inbox_failed || is_transient(error) || action_for(error) == Action::stop) return Next::stop_database;
  return next;
}

ConsumeRun::Next ConsumeRun::fail(std::string_view outcome, const std::string& why) {
  ++tally_.failed;
  progress_.message(fmt::format("line {}: {}", line_, why));
  tell(outcome, why);
  return options_.stop_on_error ? Next::stop_failed : Next::go_on;
}

void ConsumeRun::tell(std::string_view outcome, std::string_view error) {
  last_line_ = line_;
  if (!options_.json) return;
  nlohmann::ordered_json json = {{"line", line_}};
  if (!key_.empty()) json["key"] = key_;
  json["outcome"] = outcome;
  if (!error.empty()) json["error"] = error;
  output_.line(json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

int ConsumeRun::finish(Next last) {
  progress_.erase();
  std::optional<std::size_t> stopped_at;
  if (last != Next::go_on) stopped_at = last_line_;
  output_.line(options_.json ? summary_json(tally_, progress_.elapsed(), stopped_at)
                             : summary(tally_, progress_.elapsed(), stopped_at));
  if (last == Next::stop_database) return exit_database;
  if (last == Next::stop_signal || output_.failed()) return exit_stopped;
  return tally_.all_well() ? exit_ok : exit_found;
}

}  // namespace txinbox::cli
