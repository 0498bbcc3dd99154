#pragma once

#include <exception>
#include <optional>
#include <string>
#include <vector>

#include <txinbox/error.hpp>
#include <txinbox/message.hpp>
#include <txinbox/result.hpp>

namespace txinbox::test {

using Outcomes = std::vector<Outcome>;
inline constexpr Outcome consumed = Outcome::consumed;
inline constexpr Outcome duplicate = Outcome::already_consumed;
inline constexpr Outcome conflict = Outcome::conflict;
inline constexpr Outcome parked = Outcome::parked;
inline constexpr Outcome failed = Outcome::failed;
inline constexpr Outcome not_run = Outcome::not_run;

inline std::vector<Message> messages_of(const std::vector<std::string>& keys) {
  std::vector<Message> messages;
  for (const std::string& key : keys) messages.push_back({.business_key = key});
  return messages;
}

inline Outcomes outcomes(const std::vector<Result>& results) {
  Outcomes all;
  for (const Result& each : results) all.push_back(each.outcome);
  return all;
}

/// The code of an error of txinbox. Nothing for any other error.
inline std::optional<ErrorCode> code_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return e.code();
  } catch (...) {
    return std::nullopt;
  }
}

/// The class of the error that `f` throws.
template <class F>
std::string class_of_error(const F& f) {
  try {
    f();
  } catch (...) {
    return error_class(std::current_exception());
  }
  return "nothing";
}

}  // namespace txinbox::test
