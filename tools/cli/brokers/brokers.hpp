#pragma once

// The brokers and other servers that the command reaches by a URL. A new one is a row of the table in brokers.cpp, and
// a file with its BrokerCalls.

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/finding.hpp>
#include <txinbox/outbox_relay.hpp>
#include <txinbox/redrive.hpp>
#include <txinbox/source.hpp>

namespace txinbox::cli {

/// The URL of `--from`, or of the environment variable TXINBOX_FROM. Empty if there is neither.
///
/// Errors: `UsageError` if `--from` contains a password, if nobody consumes from such a URL, or if this installation
///          does not have the component of the broker.
std::string source_url(const std::string& option);

/// Opens the source of such a URL. `held` is `RunOptions::max_in_flight`: without a prefetch in the URL of RabbitMQ, it
/// decides that.
///
/// Errors: those of the component.
std::unique_ptr<Source> open_source(const std::string& url, const std::string& dead_letters, std::size_t held);

/// Opens the republisher for the dead letters of such a URL.
///
/// Errors: those of the component.
Republisher open_republisher(const std::string& url);

/// The publisher for the URL of `--to`.
///
/// Errors: `UsageError` if the URL contains a password, if nobody publishes to such a URL, or if this installation
///          does not have the component of the broker; the errors of the component.
Publisher open_publisher(const std::string& url, std::chrono::milliseconds timeout);

/// Whether the URL names a server with leases, which `doctor` examines.
bool names_lease_server(std::string_view url);

/// The settings of this server that can lose leases.
///
/// Errors: `UsageError` if this installation does not have the component; the errors of the component.
std::vector<Finding> diagnose_lease_server(const std::string& url);

/// Whether a word of the command line is the URL of a broker with a password. It need not be the value of an option.
bool is_broker_url_with_password(std::string_view argument);

/// The environment variables for passwords, as "A, B or C".
std::string password_variables();

}  // namespace txinbox::cli
