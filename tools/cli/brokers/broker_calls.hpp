#pragma once

// The functions of a server's component that the command needs. They are part of the command, or of a plugin,
// which is a shared library that the command loads for the scheme of a URL.

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <txinbox/finding.hpp>
#include <txinbox/outbox_relay.hpp>
#include <txinbox/redrive.hpp>
#include <txinbox/source.hpp>

namespace txinbox::cli {

/// The version that a file was compiled with. The build sets it, for the command and for each plugin.
inline constexpr const char* compiled_version = TXINBOX_CLI_VERSION;

/// A function is null if the server does not have it.
struct BrokerCalls {
  /// The first member in all versions, because the command checks the version of a plugin with it.
  const char* version = compiled_version;
  std::unique_ptr<Source> (*open_source)(const std::string& url, const std::string& dead_letters,
                                         std::size_t held) = nullptr;
  Publisher (*open_publisher)(const std::string& url, std::chrono::milliseconds timeout) = nullptr;
  Republisher (*open_republisher)(const std::string& url) = nullptr;  ///< Each server that is consumed from has one.
  std::vector<Finding> (*diagnose)(const std::string& url) = nullptr;
};

/// The publisher with the options of the URL and this time-out.
template <auto read_options, auto open>
Publisher open_with_timeout(const std::string& url, std::chrono::milliseconds timeout) {
  auto options = read_options(url);
  options.timeout = timeout;
  return open(options);
}

/// The type of the function that each server's file defines.
using FindBrokerCalls = const BrokerCalls* (*)() noexcept;

}  // namespace txinbox::cli

/// Begins the definition of the function that returns the calls of a server. A plugin exports it.
#define TXINBOX_BROKER_CALLS(name) \
  extern "C" __attribute__((visibility("default"))) const txinbox::cli::BrokerCalls* txinbox_broker_##name() noexcept
