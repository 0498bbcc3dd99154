#pragma once

#include <exception>
#include <optional>
#include <string>
#include <vector>

#include <txinbox/error.hpp>
#include <txinbox/message.hpp>
#include <txinbox/result.hpp>

namespace txinbox::test {

inline std::vector<Message> messages_of(const std::vector<std::string>& keys) {
  std::vector<Message> messages;
  for (const std::string& key : keys) messages.push_back({.business_key = key});
  return messages;
}

inline std::vector<Outcome> outcomes(const std::vector<Result>& results) {
  std::vector<Outcome> all;
  for (const Result& each : results) all.push_back(each.outcome);
  return all;
}

/// The code of one of our errors; none for another.
inline std::optional<ErrorCode> code_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return e.code();
  } catch (...) {
    return std::nullopt;
  }
}

}  // namespace txinbox::test
